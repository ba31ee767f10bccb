//! Sites that send people back: payment providers, card checks and sign-in pages. They are never
//! the source of a visit.
//!
//! `host` includes its subdomains, and `name.*` is a name under any country suffix.

/// Payment providers, and hosts of banks that confirm payments.
pub(super) const TILLS: &str = "
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
pub(super) const CARD_CHECKS: &str = "
    3dsecure.io 3dsecure.no 3dss.netcetera.com arcot.com cardinalcommerce.com enstage.com gpayments.com gpayments.net
    modirum.com mycardsecure.com placard.dnp-cdms.jp rsa3dsauth.co.uk rsa3dsauth.com securecode.com securesuite.co.uk
    securesuite.net touchtechpayments.com verifiedbyvisa.com visasecure.com wibmo.com wlp-acs.com
";

/// Hosts where people sign in or confirm their identity.
pub(super) const SIGN_IN: &str = "
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
