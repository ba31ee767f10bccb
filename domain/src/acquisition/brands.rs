//! Sites that are counted by brand instead of by host.

use super::category::Category;

/// A site with a brand name.
pub(super) struct Brand {
    /// The source under which its hosts are counted.
    pub(super) name: &'static str,
    /// The category; `None` for a site without one, whose links are referrals.
    pub(super) category: Option<Category>,
    /// Other words that identify it in a `utm_source`.
    pub(super) words: &'static [&'static str],
    /// `host` (that host and its `m.`), `.host` (with all subdomains), or `name.*` (under any
    /// country suffix). Hosts of Android apps are package names.
    pub(super) hosts: &'static [&'static str],
}

const fn brand(name: &'static str, category: Category, words: &'static [&'static str], hosts: &'static [&'static str]) -> Brand {
    Brand { name, category: Some(category), words, hosts }
}

use Category::{AiAssistant, Search, Shopping, Social, Video};

#[rustfmt::skip]
pub(super) static BRANDS: &[Brand] = &[
    // Search engines. Portals have hosts without search (mail, documents), so each search host is
    // listed.
    brand("google", Search, &[], &[
        "google.*", "google.cat", "images.google.*", "encrypted.google.com", "cse.google.com", "search.app", "search.app.goo.gl",
        "com.google.android.googlequicksearchbox",
    ]),
    brand("bing", Search, &[], &[".bing.com", "com.microsoft.bing"]),
    brand("yahoo", Search, &[], &["yahoo.*", ".search.yahoo.com", "search.yahoo.co.jp"]),
    brand("duckduckgo", Search, &["ddg"], &[".duckduckgo.com", "com.duckduckgo.mobile.android"]),
    brand("baidu", Search, &[], &["baidu.com", "wap.baidu.com", "image.baidu.com"]),
    brand("yandex", Search, &[], &["yandex.*", "images.yandex.*", "ya.ru", "ru.yandex.searchplugin"]),
    brand("ecosia", Search, &[], &[".ecosia.org"]),
    brand("brave", Search, &[], &["search.brave.com"]),
    brand("startpage", Search, &[], &[".startpage.com"]),
    brand("qwant", Search, &[], &[".qwant.com"]),
    brand("naver", Search, &[], &["naver.com", "search.naver.com", "m.search.naver.com"]),
    brand("daum", Search, &[], &["daum.net", "search.daum.net", "m.search.daum.net"]),
    brand("seznam", Search, &[], &["seznam.cz", "search.seznam.cz"]),
    brand("sogou", Search, &[], &[".sogou.com"]),
    brand("kagi", Search, &[], &["kagi.com"]),
    brand("aol", Search, &[], &["search.aol.com", "search.aol.co.uk", "suche.aol.de"]),
    brand("mojeek", Search, &[], &[".mojeek.com"]),
    brand("swisscows", Search, &[], &[".swisscows.com"]),
    brand("metager", Search, &[], &["metager.de", "metager.org"]),
    brand("petal search", Search, &["petalsearch"], &[".petalsearch.com"]),
    brand("coc coc", Search, &["coccoc"], &[".coccoc.com"]),
    brand("ask", Search, &[], &[".ask.com"]),

    // Social networks.
    brand("facebook", Social, &["fb"], &[".facebook.com", "fb.com", "fb.me", "com.facebook.katana", "com.facebook.lite"]),
    brand("instagram", Social, &["ig"], &[".instagram.com", "com.instagram.android", "com.instagram.lite"]),
    brand("threads", Social, &[], &[".threads.net", ".threads.com", "com.instagram.barcelona"]),
    brand("linkedin", Social, &["li"], &[".linkedin.com", "lnkd.in", "com.linkedin.android"]),
    brand("twitter", Social, &["x", "tw"], &[".twitter.com", ".x.com", "t.co", "com.twitter.android"]),
    brand("reddit", Social, &[], &[".reddit.com", "redd.it", "com.reddit.frontpage"]),
    brand("pinterest", Social, &[], &["pinterest.*", ".pinterest.com", "pin.it", "com.pinterest"]),
    brand("tiktok", Social, &[], &[".tiktok.com", "com.zhiliaoapp.musically", "com.ss.android.ugc.trill"]),
    brand("snapchat", Social, &[], &[".snapchat.com", "com.snapchat.android"]),
    brand("whatsapp", Social, &["wa"], &[".whatsapp.com", "wa.me", "com.whatsapp"]),
    brand("messenger", Social, &[], &[".messenger.com", "m.me", "com.facebook.orca"]),
    brand("telegram", Social, &["tg"], &["t.me", "telegram.me", ".telegram.org", "org.telegram.messenger", "org.telegram.messenger.web"]),
    brand("discord", Social, &[], &[".discord.com", "discord.gg", "com.discord"]),
    brand("bluesky", Social, &[], &[".bsky.app", "bsky.social"]),
    brand("mastodon", Social, &[], &["mastodon.social", "joinmastodon.org"]),
    brand("quora", Social, &[], &[".quora.com", "com.quora.android"]),
    brand("tumblr", Social, &[], &["tumblr.com", "t.umblr.com"]),
    brand("vk", Social, &["vkontakte"], &[".vk.com", "vk.ru", "vkontakte.ru", "com.vkontakte.android"]),
    brand("weibo", Social, &[], &[".weibo.com", "weibo.cn"]),
    brand("wechat", Social, &[], &[".wechat.com", "weixin.qq.com", "mp.weixin.qq.com", "com.tencent.mm"]),
    brand("line", Social, &[], &[".line.me"]),

    // Video.
    brand("youtube", Video, &["yt"], &[".youtube.com", "youtu.be", "youtube-nocookie.com", "com.google.android.youtube"]),
    brand("vimeo", Video, &[], &[".vimeo.com"]),
    brand("twitch", Video, &[], &[".twitch.tv"]),
    brand("dailymotion", Video, &[], &[".dailymotion.com", "dai.ly"]),

    // Shops.
    brand("amazon", Shopping, &[], &["amazon.*", "smile.amazon.com", ".amazon-adsystem.com", "com.amazon.mshop.android.shopping"]),
    brand("ebay", Shopping, &[], &["ebay.*"]),
    brand("etsy", Shopping, &[], &[".etsy.com"]),
    brand("walmart", Shopping, &[], &[".walmart.com"]),
    brand("alibaba", Shopping, &[], &[".alibaba.com"]),
    brand("aliexpress", Shopping, &[], &[".aliexpress.com"]),
    brand("mercadolibre", Shopping, &["mercadolivre"], &["mercadolibre.*", "mercadolivre.*"]),
    brand("google shopping", Shopping, &["googleshopping"], &["shopping.google.com"]),
    brand("instagram shopping", Shopping, &["igshopping"], &[]),

    // AI assistants.
    brand("chatgpt", AiAssistant, &["openai"], &[".chatgpt.com", "chat.openai.com", "com.openai.chatgpt"]),
    brand("perplexity", AiAssistant, &[], &[".perplexity.ai", "ai.perplexity.app.android"]),
    brand("gemini", AiAssistant, &["bard"], &["gemini.google.com", "bard.google.com", "com.google.android.apps.bard"]),
    brand("claude", AiAssistant, &["anthropic"], &[".claude.ai", "claude.com", "com.anthropic.claude"]),
    brand("copilot", AiAssistant, &[], &[
        "copilot.microsoft.com", ".copilot.com", "copilot.cloud.microsoft", "m365.cloud.microsoft", "edgeservices.bing.com",
        "com.microsoft.copilot",
    ]),
    brand("deepseek", AiAssistant, &[], &[".deepseek.com"]),
    brand("grok", AiAssistant, &[], &[".grok.com", "grok.x.ai"]),
    brand("mistral", AiAssistant, &[], &["chat.mistral.ai"]),
    brand("meta ai", AiAssistant, &[], &[".meta.ai"]),
    brand("you.com", AiAssistant, &[], &[".you.com"]),
    brand("poe", AiAssistant, &[], &["poe.com"]),
    brand("phind", AiAssistant, &[], &[".phind.com"]),
    brand("kimi", AiAssistant, &[], &[".kimi.com", "kimi.moonshot.cn"]),
    brand("qwen", AiAssistant, &[], &["chat.qwen.ai", "qwen.ai", "tongyi.aliyun.com"]),
    brand("doubao", AiAssistant, &[], &[".doubao.com"]),
    brand("notebooklm", AiAssistant, &[], &["notebooklm.google.com"]),
    brand("duck.ai", AiAssistant, &[], &["duck.ai"]),
    brand("pi.ai", AiAssistant, &[], &["pi.ai"]),
    brand("felo", AiAssistant, &[], &["felo.ai"]),
    brand("iask", AiAssistant, &[], &["iask.ai"]),
    brand("andi", AiAssistant, &[], &["andisearch.com"]),
    brand("z.ai", AiAssistant, &[], &["chat.z.ai"]),
    brand("genspark", AiAssistant, &[], &[".genspark.ai"]),

    Brand { name: "github", category: None, words: &[], hosts: &[".github.com"] },
];
