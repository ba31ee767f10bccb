//! The external referrer of an event: the host of the site that sent the visitor. Sites that send
//! people back are never the source of a visit: payment providers, card checks and sign-in pages.
//!
//! In the lists, `host` includes its subdomains, and `name.*` is a name under any country suffix.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::LazyLock;

use super::sources::{Fnv, name_under_country};
use crate::hosts::{HostList, SiteHost, and_parents};
use crate::text;

/// Words in the host names of banks' own card checks: `3dsecure.bank.example`,
/// `acs-2.bank.example`.
const CARD_CHECK_WORDS: [&str; 5] = ["3dsecure", "3ds", "threeds", "3dauth", "acs"];

static NO_SOURCES: LazyLock<HashSet<&'static str, BuildHasherDefault<Fnv>>> = LazyLock::new(|| {
    // `name.*` is stored as `name.`.
    let hosts = [TILLS, CARD_CHECKS, SIGN_IN].into_iter().flat_map(str::split_whitespace);
    hosts.map(|host| host.trim_end_matches('*')).collect()
});

/// Returns the referring host, lower-cased, without `www.` and port. Returns `None` without a
/// referrer, and if the host belongs to the site of the event (its `hostname`, or the host of its
/// `url`), is in `ignored`, or is a payment or sign-in page.
///
/// A referrer without a scheme counts if its first part contains a dot, because some trackers send
/// bare hosts.
#[must_use]
pub fn external_host<'r>(
    referrer: Option<&'r str>,
    own_hostname: Option<&str>,
    url: Option<&str>,
    ignored: &HostList,
) -> Option<Cow<'r, str>> {
    let referrer = referrer?;
    let host = text::referring_host(referrer)?;
    let from = SiteHost::new(&host, referrer);
    let is_own = |own: Option<Cow<'_, str>>, address: &str| own.is_some_and(|own| SiteHost::new(&own, address).is_of_site(&from));
    let is_internal = own_hostname.is_some_and(|own| is_own(text::named_host(own), own))
        || url.is_some_and(|url| is_own(text::host_of(url), url));
    let is_external = !is_internal && !ignored.covers(&from.host) && !is_no_source(&from);
    drop(from);
    is_external.then_some(host)
}

/// Whether a place is a payment or sign-in page, from which people come back.
fn is_no_source(place: &SiteHost<'_>) -> bool {
    let host = &*place.host;
    let name_end = name_under_country(host).map_or(0, str::len);
    let is_listed = |parent: &str| {
        let name = host.get(host.len() - parent.len()..name_end);
        NO_SOURCES.contains(parent) || name.is_some_and(|name| NO_SOURCES.contains(name))
    };
    and_parents(host).any(is_listed) || checks_cards(place)
}

fn checks_cards(place: &SiteHost<'_>) -> bool {
    let has_word = |text: &str| {
        let mut words = text.split(['.', '-']).map(|word| word.trim_end_matches(|letter: char| letter.is_ascii_digit()));
        words.any(|word| CARD_CHECK_WORDS.contains(&word))
    };
    // Nearly no host has one.
    has_word(&place.host) && place.domain().and_then(|domain| place.host.strip_suffix(domain)).is_some_and(has_word)
}

/// Payment providers, and hosts of banks that confirm payments.
const TILLS: &str = "
    2checkout.com 95516.com adyen.com adyenpayments.com affirm.com afterpay.com alipay.com alipayplus.com
    amazonpay.com apay-us.amazon.com apple-pay-gateway.apple.com applepay.cdn-apple.com atome.sg authorize.net
    bambora.com bancontact.com betalen.rabobank.nl billdesk.com billplz.com bitpay.com blik.com bluesnap.com
    braintree-api.com braintreegateway.com braintreepayments.com cashfree.com ccavenue.com chargebee.com checkout.com
    checkout.shopify.com checkout.square.site clearpay.co.uk clearpay.com cloudpayments.ru
    com.paypal.android.p2pmobile commerce.coinbase.com computop-paygate.com concardis.com conekta.com cybersource.com
    datatrans.com dibspayment.com dibspayment.eu dlocal.com doku.com easebuzz.in ebanx.com elavon.com
    eps-ueberweisung.at eway.com.au eway.io fastspring.com flutterwave.com getalma.eu giropay.de globalpay.com
    globalpayments.com gmo-pg.com gocardless.com heidelpay.com hipay.com ideal.abnamro.nl ideal.asnbank.nl
    ideal.bunq.com ideal.handelsbanken.nl ideal.ing.nl ideal.knab.nl ideal.moneyou.nl ideal.n26.com
    ideal.nationale-nederlanden.nl ideal.nl ideal.rabobank.nl ideal.regiobank.nl ideal.revolut.com ideal.snsbank.nl
    ideal.triodos-onlinebanking.nl ideal.triodos.nl ideal.vanlanschot.com ideal.yoursafe.com inicis.com instamojo.com
    iyzico.com iyzipay.com juspay.in kakaopay.com klarna.com klarna.net komoju.com laybuy.com lemonsqueezy.com
    lyra.com mercadopago.* midtrans.com mobilepay.dk mobilepay.fi mollie.com moneris.com monetico-services.com
    moyasar.com multisafepay.com neteller.com nets.eu nexi.it nicepay.co.kr nochex.com ogone.com omise.co oney.com
    oney.io onfastspring.com opayo.* paddle.com pagar.me pagopa.gov.it pagseguro.com.br paguelofacil.com pay.amazon.*
    pay.google.com pay.line.me pay.naver.com pay.shopify.com pay.yandex.ru payconiq.com paydirekt.de payex.com
    payfast.co.za payfast.io payfort.com payhere.lk paylike.io payline.com paymaya.com payments.amazon.*
    payments.google.com paymentwall.com paymob.com payoneer.com paypal.* paypal.me paypalobjects.com paypay.ne.jp
    payplug.com payrexx.com paysafe.com paysafecard.com paysera.com paystack.com paytabs.com paytm.com paytm.in
    paytr.com paytrail.com payu.* payway.com.au payzen.eu perfectmoney.com phonepe.com phonepe.in pin-payments.com
    placetopay.com postfinance.ch przelewy24.pl qenta.com qiwi.com quadpay.com quickpay.net ratepay.com razorpay.com
    recurly.com redsys.es robokassa.ru safecharge.com saferpay.com sagepay.com satispay.com scalapay.com
    securepay.tinkoff.ru securetrading.com securionpay.com sezzle.com shift4.com shop.app shopifypay.com sibs.pt
    sips-services.com skrill.com sofort.com squareup.com squareupsandbox.com stripe.com sumup.com svea.com swish.nu
    tabby.ai tamara.co tenpay.com thawani.om tossbank.com tosspayments.com tpay.com transbank.cl truelayer.com
    trustly.com twint.ch unionpayintl.com unzer.com verifone.cloud vipps.no vivapayments.com vivawallet.com wallee.com
    wallet.google.com wepay.com wirecard.com wompi.co wompi.com worldline-solutions.com worldpay.com xendit.co
    yookassa.ru yoomoney.ru zip.co zipmoney.com.au
";

/// Hosts of banks for card confirmation (3-D Secure).
const CARD_CHECKS: &str = "
    3dsecure.io 3dsecure.no 3dss.netcetera.com arcot.com cardinalcommerce.com enstage.com gpayments.com gpayments.net
    modirum.com mycardsecure.com placard.dnp-cdms.jp rsa3dsauth.co.uk rsa3dsauth.com securecode.com securesuite.co.uk
    securesuite.net touchtechpayments.com verifiedbyvisa.com visasecure.com wibmo.com wlp-acs.com
";

/// Hosts where people sign in or confirm their identity.
const SIGN_IN: &str = "
    access.line.me account.apple.com account.live.com account.microsoft.com accounts.dev accounts.firefox.com
    accounts.google.* accounts.kakao.com accounts.shopify.com accounts.snapchat.com accounts.spotify.com
    accounts.youtube.com accounts.zoho.com amazoncognito.com api.twitter.com api.x.com appleid.apple.com
    auth.openai.com auth0.com authkit.app b2clogin.com bankid.com bankid.no ciamlogin.com descope.com digid.nl
    duosecurity.com fidm.gigya.com forgerock.io franceconnect.gouv.fr frontegg.com fusionauth.io graph.qq.com
    id.atlassian.com id.me id.twitch.tv id.vk.com idmsa.apple.com itsme.be itsme.services kauth.kakao.com kinde.com
    login.aliexpress.com login.aol.com login.gov login.live.com login.microsoft.com login.microsoftonline.*
    login.salesforce.com login.shopify.com login.taobao.com login.windows.net login.xero.com login.yahoo.co.jp
    login.yahoo.com logto.app microsoftonline.cn microsoftonline.com microsoftonline.us mitid.dk nemlog-in.dk
    nid.naver.com oauth.telegram.org oauth.vk.com oauth.yandex.* okta-emea.com okta-gov.com okta.com oktapreview.com
    onelogin.com open.weixin.qq.com passport.yandex.* pingidentity.com pingone.com pingone.eu signicat.com
    signin.aws.amazon.com signin.ebay.* smart-id.com spid.gov.it stytch.com supabase.co tunnistautuminen.suomi.fi
    workos.com xui.ptlogin2.qq.com
";

#[cfg(test)]
mod tests {
    use super::*;

    fn host_of(referrer: &str, hostname: Option<&str>, url: Option<&str>) -> Option<String> {
        external_host(Some(referrer), hostname, url, &HostList::default()).map(Cow::into_owned)
    }

    #[test]
    fn referrers_are_hosts_of_other_sites() {
        let own_url = Some("https://www.shop.example/pricing");
        let table = [
            // referrer, own hostname, url, host
            ("https://www.Google.com/search?q=x", None, own_url, Some("google.com")),
            ("https://news.ycombinator.com/", Some("shop.example"), None, Some("news.ycombinator.com")),
            ("https://shop.example/other", None, own_url, None),
            ("https://WWW.shop.example:443/", Some("Shop.Example:8443"), None, None),
            ("https://shop.example/", Some("https://www.shop.example/"), None, None),
            ("https://blog.shop.example/", Some("shop.example"), own_url, None),
            ("https://shop.example./", Some("blog.shop.example"), None, None),
            ("https://shop.example/", None, Some("https://a.b.shop.example/"), None),
            ("https://myshop.example/", None, own_url, Some("myshop.example")),
            ("https://other.example/", Some("shop.example"), Some("https://other.example/x"), None),
            ("https://a.shop.co.uk/", Some("b.shop.co.uk"), None, None),
            ("https://other.co.uk/", Some("shop.co.uk"), None, Some("other.co.uk")),
            ("https://two.myshopify.com/", Some("one.myshopify.com"), None, Some("two.myshopify.com")),
            ("https://two.github.io/", Some("one.github.io"), None, Some("two.github.io")),
            ("https://blog.MÜNCHEN.example/", Some("xn--mnchen-3ya.example"), None, None),
            ("http://localhost:3000/", Some("localhost:8080"), None, None),
            ("http://192.168.0.2:81/", Some("192.168.0.2"), None, None),
            ("http://192.168.0.2/", Some("192.168.1.2"), None, Some("192.168.0.2")),
            ("http://[2001:db8::1]:81/", None, Some("http://[2001:db8::1]/"), None),
            ("google.com", None, own_url, Some("google.com")),
            ("www.google.com/search?q=x", None, own_url, Some("google.com")),
            ("android-app://com.linkedin.android/", None, own_url, Some("com.linkedin.android")),
            ("android-app://com.google.android.gm/", None, own_url, Some("com.google.android.gm")),
            ("android-app://org.one.app", None, Some("android-app://com.one.app/start"), Some("org.one.app")),
            ("android-app://com.one.app/a", None, Some("android-app://com.one.app/start"), None),
            ("/internal", None, own_url, None),
            ("about:blank", None, own_url, None),
            ("null", None, own_url, None),
            ("direct", None, own_url, None),
            ("", None, own_url, None),
            ("https://", None, own_url, None),
            ("https://?x", None, own_url, None),
        ];
        for (referrer, hostname, url, host) in table {
            assert_eq!(host_of(referrer, hostname, url).as_deref(), host, "{referrer} {hostname:?} {url:?}");
        }
        assert_eq!(external_host(None, None, own_url, &HostList::default()), None);
    }

    #[test]
    fn tills_and_sign_in_pages_send_nobody() {
        for host in [
            "www.paypal.com",
            "paypal.com",
            "www.paypal.co.uk",
            "CHECKOUT.paypal.de.",
            "checkout.stripe.com:443",
            "hooks.stripe.com",
            "pay.klarna.com",
            "checkoutshopper-live.adyen.com",
            "www.mollie.com",
            "shop.app",
            "pay.shopify.com",
            "payments.amazon.de",
            "pay.amazon.com",
            "www.mercadopago.com.ar",
            "mercadopago.com",
            "ideal.ing.nl",
            "betalen.rabobank.nl",
            "r3.girogate.giropay.de",
            "pay.google.com",
            "centinelapi.cardinalcommerce.com",
            "secure5.arcot.com",
            "3dsecure.bank.example",
            "acs2.bank.example",
            "3ds-acs.bank.example",
            "acs.3ds.bank.co.uk",
            "accounts.google.com",
            "accounts.google.co.uk",
            "login.microsoftonline.com",
            "login.live.com",
            "appleid.apple.com",
            "idmsa.apple.com",
            "acme.okta.com",
            "acme.eu.auth0.com",
            "acme.b2clogin.com",
        ] {
            assert_eq!(host_of(&format!("https://{host}/x"), None, Some("https://shop.example/")), None, "{host}");
        }
        for host in [
            "notpaypal.com",
            "paypal.com.evil.example",
            "google.com",
            "microsoft.com",
            "amazon.com",
            "rabobank.nl",
            "3ds.com",
            "acs.org",
            "pubs.acs.org",
            "shopify.com",
            "one.myshopify.com",
        ] {
            assert_eq!(host_of(&format!("https://{host}/x"), None, Some("https://shop.example/")).as_deref(), Some(host));
        }
    }

    #[test]
    fn a_project_ignores_what_it_lists() {
        let ignored = HostList::new(["acme.example", "10.0.0.1", "com.acme.app"].map(str::to_owned));
        let of = |referrer| external_host(Some(referrer), Some("shop.example"), None, &ignored).map(Cow::into_owned);
        for referrer in
            ["https://acme.example/", "http://WWW.acme.example./", "https://a.b.acme.example", "http://10.0.0.1:8080/"]
        {
            assert_eq!(of(referrer), None, "{referrer}");
        }
        assert_eq!(of("android-app://com.acme.app/"), None);
        assert_eq!(of("https://notacme.example/").as_deref(), Some("notacme.example"));
    }

    #[test]
    fn the_lists_name_no_host_twice() {
        let mut seen = HashSet::new();
        for host in [TILLS, CARD_CHECKS, SIGN_IN].into_iter().flat_map(str::split_whitespace) {
            let parents = and_parents(host).skip(1).any(|parent| seen.contains(parent));
            assert!(!parents && seen.insert(host) && host == host.to_lowercase(), "{host}");
        }
    }
}
