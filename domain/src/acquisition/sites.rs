//! The rest of Google's list of sources: sites that are counted by their host. A word without a dot
//! also means `word.com`.

pub(super) const SEARCH: &str = "
    360.cn alice auone avg babylon biglobe biglobe.co.jp biglobe.ne.jp centrum.cz cnn comcast conduit dogpile eniro
    exalead.com excite.com firmy.cz globo go.mail.ru google-play incredimail kvasir lens.google.com lycos msn najdi
    news.google.com ntp.msn.com onet onet.pl play.google.com rakuten rakuten.co.jp rambler rambler.ru search-results
    search.google.com search.smt.docomo.ne.jp search.ukr.net so.com sp-web.search.auone.jp startsiden startsiden.no
    terra tut.by ukr virgilio websearch.rakuten.co.jp
    mojeek.com swisscows.com petalsearch.com presearch.com coccoc.com yep.com
";

pub(super) const SOCIAL: &str = "
    43things 51.com 5ch.net academia.edu activerain activeworlds addthis airg.ca allnurses.com allrecipes.com
    alumniclass ameba.jp ameblo.jp americantowns ancestry.com anobii answerbag answers.yahoo.com aolanswers
    artstation.com askubuntu asmallworld.com athlinks awe.sm b.hatena.ne.jp baby-gaga babyblog.ru badoo bebo
    beforeitsnews bharatstudent biip.no biswap.org bit.ly blackcareernetwork.com blackplanet blip.fm blog.com
    blog.feedspot.com blog.goo.ne.jp blog.naver.com blog.yahoo.co.jp blogg.no bloggang.com blogger blogher bloglines
    blogs.com blogsome blogspot blogster blurtit bookmarks.yahoo.co.jp bookmarks.yahoo.com brightkite brizzly buzzfeed
    buzznet cafe.naver.com cafemom camospace canalblog.com care.com care2 caringbridge.org catster cbnt.io cellufun
    centerblog.net chat.zalo.me chegg.com chicagonow chiebukuro.yahoo.co.jp classmates classquest cocolog-nifty
    copainsdavant.linternaute.com couchsurfing.org cozycot cross.tv crunchyroll cyworld d.hatena.ne.jp dailystrength.org
    deluxe.com deviantart dianping digg diigo discover.hubpages.com disqus dogster dol2day doostang dopplr douban
    draft.blogger.com draugiem.lv drugs-forum dzone edublogs.org elftown epicurious.com everforo.com exblog.jp extole
    faceparty fandom.com fanpop fark fc2 feedspot feministing filmaffinity flickr flipboard folkdirect foodservice
    forums.androidcentral.com forums.crackberry.com forums.imore.com forums.nexopia.com forums.webosnation.com
    forums.wpcentral.com fotki fotolog foursquare friendfeed fruehstueckstreff.org fubar gaiaonline gamerdna gather.com
    geni.com getpocket.com glassboard glassdoor godtube goldenline.pl goldstar goo.gl gooblog goodreads google+
    googlegroups.com googleplus govloop gowalla gree.jp groups.google.com gulli.com gutefrage.net habbo hatena hi5
    hootsuite houzz hoverspot hr.com hubculture hubpages.com hyves.net hyves.nl ibibo identi.ca imageshack imageshack.us
    imvu insanejournal instapaper internations.org interpals.net intherooms irc-galleria.net is.gd italki jammerdirect
    jappy.com jappy.de kaboodle.com kakao kakaocorp.com kaneva kin.naver.com last.fm librarything lifestream.aol.com
    listal listography livedoor.com livedoorblog livejournal m.blog.naver.com m.cafe.naver.com m.kin.naver.com mbga.jp
    medium.com meetin.org meetup meinvz.net meneame.net menuism.com messages.google.com messages.yahoo.co.jp mix.com
    mixi.jp mocospace mouthshut movabletype mubi my.opera.com myanimelist.net myheritage mylife mymodernmet myspace
    netvibes news.ycombinator.com newsshowcase nexopia ngopost.org niconico nicovideo.jp nightlifelink ning
    odnoklassniki.ru odnoklassniki.ua okwave.jp oneworldgroup.org onstartups opendiary oshiete.goo.ne.jp over-blog.com
    overblog.com paper.li partyflock.nl photobucket pinboard pinboard.in pingsta pixiv.net playahead.se plurk
    plus.google.com plus.url.google.com pocket.co posterous pro.homeadvisor.com pulse.yahoo.com qapacity quechup qzone.qq.com
    ravelry redux renren researchgate.net reunion reverbnation rtl.de ryze salespider scoop.it screenrant scribd scvngr
    secondlife serverfault shareit sharethis shvoong.com sites.google.com skype web.skype.com skyrock slashdot.org
    slideshare.net smartnews.com social sociallife.com.br socialvibe spaces.live.com spoke spruz ssense.com stackapps
    stackexchange stackoverflow stardoll.com stickam studivz.net suomi24.fi superuser sweeva tagged taggedmail talkbiznow
    taringa.net techmeme tencent tinyurl toolbox travellerspoint tripadvisor trombi trustpilot tudou tuenti tweetdeck
    twoo.com typepad unblog.fr urbanspoon.com ushareit.com ushi.cn vampirefreaks vampirerave vg.no video.ibm.com wakoopa
    wattpad webshots weebly wer-weiss-was.de weread wiki.answers.com wikihow.com wikitravel.org woot.com wordpress
    wordpress.org xanga xing yahoo-mbga.jp yammer yelp yelp.co.uk youroom.in zalo zoo.gr zooppa
    ok.ru nextdoor.com lemmy.world
";

pub(super) const SHOPPING: &str = "
    apps.shopify.com checkout.shopify.com checkout.stripe.com cr.shopping.naver.com cr2.shopping.naver.com
    m.shopping.naver.com msearch.shopping.naver.com nl.shopping.net no.shopping.net order.shopping.yahoo.co.jp
    partners.shopify.com s3.amazonaws.com se.shopping.net shop.app shopify shopping.naver.com shopping.yahoo.co.jp
    shopping.yahoo.com shopzilla simplycodes.com store.shopping.yahoo.co.jp stripe uk.shopping.net
";

pub(super) const VIDEO: &str = "
    crackle curiositystream d.tube disneyplus fast.wistia.net help.hulu.com help.netflix.com hulu iq.com iqiyi
    jobs.netflix.com justin.tv netflix ted utreon veoh viadeo.journaldunet.com wistia youku
";
