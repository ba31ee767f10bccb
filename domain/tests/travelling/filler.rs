//! A deserializer that makes up the value of each field from the name of the field.

use serde::de::value::{Error, StrDeserializer, U32Deserializer};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor};

/// The elements of a list.
const ELEMENTS: usize = 2;

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct Filler {
    round: u64,
    seed: u64,
}

impl Filler {
    pub(crate) fn new(round: u64) -> Self {
        Self { round, seed: round.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    }

    /// The filler of a part of this value.
    fn part(self, name: &str) -> Self {
        let mixed = name
            .bytes()
            .fold(self.seed ^ 0xcbf2_9ce4_8422_2325, |seed, byte| (seed ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        Self { seed: mixed, ..self }
    }

    fn number(self, most: u64) -> u64 {
        (self.seed ^ (self.seed >> 29)) % most
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $type:ty, $most:expr;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(<$type>::try_from(self.number($most)).unwrap())
        })*
    };
}

impl<'de> Deserializer<'de> for Filler {
    type Error = Error;

    numbers! {
        deserialize_u8 visit_u8 u8, 100;
        deserialize_u16 visit_u16 u16, 20_000;
        deserialize_u32 visit_u32 u32, 2_000_000;
        deserialize_u64 visit_u64 u64, 1 << 40;
        deserialize_i16 visit_i16 i16, 20_000;
        deserialize_i32 visit_i32 i32, 20_000;
        deserialize_i64 visit_i64 i64, 1 << 40;
        deserialize_u128 visit_u128 u128, u64::MAX;
        deserialize_i128 visit_i128 i128, u64::MAX;
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        panic!("a value does not say its type")
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(self.round.is_multiple_of(2))
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_i8(i8::try_from(self.number(100)).unwrap())
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(&format!("text {}", self.number(1_000)))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        // In the last round, nothing is there.
        if self.round == 4 { visitor.visit_none() } else { visitor.visit_some(self.part("some")) }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self.part(name))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Elements { filler: self, next: 0, count: ELEMENTS })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Elements { filler: self, next: 0, count })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(self, _: &'static str, count: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_tuple(count, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(Entries { filler: self, next: 0 })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(Fields { filler: self, fields: fields.iter(), field: "" })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        // By name, so that variants that change places are noticed.
        let mut names = variants.to_vec();
        names.sort_unstable();
        let name = names[usize::try_from(self.round).unwrap() % names.len()];
        let number = variants.iter().position(|variant| *variant == name).unwrap();
        visitor.visit_enum(Variant { filler: self.part(name), number: u32::try_from(number).unwrap() })
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    serde::forward_to_deserialize_any! { f32 f64 char bytes byte_buf unit_struct identifier ignored_any }
}

struct Elements {
    filler: Filler,
    next: usize,
    count: usize,
}

impl<'de> SeqAccess<'de> for Elements {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if self.next == self.count {
            return Ok(None);
        }
        self.next += 1;
        seed.deserialize(self.filler.part(&self.next.to_string())).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.count - self.next)
    }
}

struct Entries {
    filler: Filler,
    next: usize,
}

impl<'de> MapAccess<'de> for Entries {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        if self.next == ELEMENTS {
            return Ok(None);
        }
        self.next += 1;
        seed.deserialize(self.filler.part(&format!("key {}", self.next))).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self.filler.part(&format!("value {}", self.next)))
    }
}

struct Fields {
    filler: Filler,
    fields: std::slice::Iter<'static, &'static str>,
    field: &'static str,
}

impl<'de> MapAccess<'de> for Fields {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(field) = self.fields.next() else { return Ok(None) };
        self.field = field;
        seed.deserialize(StrDeserializer::new(field)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self.filler.part(self.field))
    }
}

struct Variant {
    filler: Filler,
    number: u32,
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = Error;
    type Variant = Filler;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Filler), Error> {
        let number: U32Deserializer<Error> = self.number.into_deserializer();
        Ok((seed.deserialize(number)?, self.filler))
    }
}

impl<'de> VariantAccess<'de> for Filler {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_tuple(count, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        self.deserialize_struct("", fields, visitor)
    }
}
