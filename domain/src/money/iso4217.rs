//! ISO 4217 currency codes, as published by its maintenance agency (SIX).

/// List one, "current currency and funds codes", 2026; includes funds, metals, and the codes for
/// testing and for "no currency".
#[rustfmt::skip]
static CURRENT: [[u8; 3]; 178] = [
    *b"AED", *b"AFN", *b"ALL", *b"AMD", *b"AOA", *b"ARS", *b"AUD", *b"AWG", *b"AZN", *b"BAM",
    *b"BBD", *b"BDT", *b"BHD", *b"BIF", *b"BMD", *b"BND", *b"BOB", *b"BOV", *b"BRL", *b"BSD",
    *b"BTN", *b"BWP", *b"BYN", *b"BZD", *b"CAD", *b"CDF", *b"CHE", *b"CHF", *b"CHW", *b"CLF",
    *b"CLP", *b"CNY", *b"COP", *b"COU", *b"CRC", *b"CUP", *b"CVE", *b"CZK", *b"DJF", *b"DKK",
    *b"DOP", *b"DZD", *b"EGP", *b"ERN", *b"ETB", *b"EUR", *b"FJD", *b"FKP", *b"GBP", *b"GEL",
    *b"GHS", *b"GIP", *b"GMD", *b"GNF", *b"GTQ", *b"GYD", *b"HKD", *b"HNL", *b"HTG", *b"HUF",
    *b"IDR", *b"ILS", *b"INR", *b"IQD", *b"IRR", *b"ISK", *b"JMD", *b"JOD", *b"JPY", *b"KES",
    *b"KGS", *b"KHR", *b"KMF", *b"KPW", *b"KRW", *b"KWD", *b"KYD", *b"KZT", *b"LAK", *b"LBP",
    *b"LKR", *b"LRD", *b"LSL", *b"LYD", *b"MAD", *b"MDL", *b"MGA", *b"MKD", *b"MMK", *b"MNT",
    *b"MOP", *b"MRU", *b"MUR", *b"MVR", *b"MWK", *b"MXN", *b"MXV", *b"MYR", *b"MZN", *b"NAD",
    *b"NGN", *b"NIO", *b"NOK", *b"NPR", *b"NZD", *b"OMR", *b"PAB", *b"PEN", *b"PGK", *b"PHP",
    *b"PKR", *b"PLN", *b"PYG", *b"QAR", *b"RON", *b"RSD", *b"RUB", *b"RWF", *b"SAR", *b"SBD",
    *b"SCR", *b"SDG", *b"SEK", *b"SGD", *b"SHP", *b"SLE", *b"SOS", *b"SRD", *b"SSP", *b"STN",
    *b"SVC", *b"SYP", *b"SZL", *b"THB", *b"TJS", *b"TMT", *b"TND", *b"TOP", *b"TRY", *b"TTD",
    *b"TWD", *b"TZS", *b"UAH", *b"UGX", *b"USD", *b"USN", *b"UYI", *b"UYU", *b"UYW", *b"UZS",
    *b"VED", *b"VES", *b"VND", *b"VUV", *b"WST", *b"XAD", *b"XAF", *b"XAG", *b"XAU", *b"XBA",
    *b"XBB", *b"XBC", *b"XBD", *b"XCD", *b"XCG", *b"XDR", *b"XOF", *b"XPD", *b"XPF", *b"XPT",
    *b"XSU", *b"XTS", *b"XUA", *b"XXX", *b"YER", *b"ZAR", *b"ZMW", *b"ZWG",
];

/// List three, "historic denominations": codes withdrawn since 1990, for events dated before their
/// withdrawal.
#[rustfmt::skip]
static WITHDRAWN: [[u8; 3]; 87] = [
    *b"ADP", *b"AFA", *b"ANG", *b"AOK", *b"AON", *b"AOR", *b"ARA", *b"ATS", *b"AZM", *b"BAD",
    *b"BEF", *b"BGL", *b"BGN", *b"BRC", *b"BRE", *b"BRN", *b"BRR", *b"BYB", *b"BYR", *b"CSD",
    *b"CSK", *b"CUC", *b"CYP", *b"DDM", *b"DEM", *b"ECS", *b"EEK", *b"ESP", *b"FIM", *b"FRF",
    *b"GHC", *b"GRD", *b"GWP", *b"HRD", *b"HRK", *b"IEP", *b"ITL", *b"LTL", *b"LTT", *b"LUF",
    *b"LVL", *b"LVR", *b"MGF", *b"MLF", *b"MRO", *b"MTL", *b"MXP", *b"MZM", *b"NIC", *b"NLG",
    *b"PEI", *b"PES", *b"PLZ", *b"PTE", *b"ROL", *b"RUR", *b"SDD", *b"SDP", *b"SIT", *b"SKK",
    *b"SLL", *b"SRG", *b"STD", *b"SUR", *b"TJR", *b"TMM", *b"TPE", *b"TRL", *b"UAK", *b"UGS",
    *b"USS", *b"UYP", *b"VEB", *b"VEF", *b"XEU", *b"YDD", *b"YUD", *b"YUM", *b"YUN", *b"ZAL",
    *b"ZMK", *b"ZRN", *b"ZRZ", *b"ZWD", *b"ZWL", *b"ZWN", *b"ZWR",
];

/// Whether ISO 4217 lists the upper-case code, now or in the past.
pub(super) fn is_listed(code: [u8; 3]) -> bool {
    CURRENT.binary_search(&code).is_ok() || WITHDRAWN.binary_search(&code).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_apart_and_made_of_letters() {
        assert!(CURRENT.is_sorted_by(|a, b| a < b));
        assert!(WITHDRAWN.is_sorted_by(|a, b| a < b));
        assert!(WITHDRAWN.iter().all(|code| CURRENT.binary_search(code).is_err()));
        assert!(CURRENT.iter().chain(&WITHDRAWN).flatten().all(u8::is_ascii_uppercase));
    }
}
