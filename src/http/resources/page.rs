//! `/`, `/ui/…` and `/assets/…`: the page, which is a client of the interface like others.

use std::io::Write;
use std::sync::LazyLock;

use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::web::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use headcount_api::endpoint::*;
use headcount_api::extract::encoding::takes_gzip;
use headcount_api::routes::Router;
use xxhash_rust::xxh3::Xxh3;

/// The paths of the page itself: it finds the rest of the path by script.
const SHELL_PATHS: [&str; 4] = ["/", "/ui", "/ui/", "/ui/{*page}"];
const ASSET_PATH: &str = "/assets/{hash}/{file}";
/// What stands in the page for the hash of its files.
const HASH_MARK: &str = "/assets/_/";
/// The name of a file changes with what is in it.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// What `npm run build` makes of `web/src`.
const SHELL: &str = include_str!("../../../web/dist/index.html");
const ASSETS: [(&str, &str, &[u8]); 2] = [
    ("app.js", "text/javascript; charset=utf-8", include_bytes!("../../../web/dist/app.js")),
    ("app.css", "text/css; charset=utf-8", include_bytes!("../../../web/dist/app.css")),
];

/// The page with the hash of its files, made once.
static PAGE: LazyLock<BuiltPage> = LazyLock::new(BuiltPage::new);

struct BuiltPage {
    hash: String,
    shell: PageFile,
    assets: Vec<(&'static str, PageFile)>,
}

/// A file as it is, and packed as well as gzip can.
#[derive(Clone)]
struct PageFile {
    content_type: &'static str,
    plain: Bytes,
    packed: Option<Bytes>,
}

impl BuiltPage {
    fn new() -> Self {
        let mut hash = Xxh3::new();
        for (_, _, content) in ASSETS {
            hash.update(content);
        }
        let hash = format!("{:032x}", hash.digest128());
        let shell = SHELL.replace(HASH_MARK, &format!("/assets/{hash}/"));
        let asset = |(name, content_type, content)| (name, PageFile::new(content_type, Bytes::from_static(content)));
        Self { hash, shell: PageFile::new("text/html; charset=utf-8", shell.into()), assets: ASSETS.map(asset).into() }
    }

    fn asset(&self, hash: &str, name: &str) -> Option<&PageFile> {
        let (_, file) = self.assets.iter().find(|(known, _)| hash == self.hash && *known == name)?;
        Some(file)
    }
}

impl PageFile {
    fn new(content_type: &'static str, plain: Bytes) -> Self {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        let packed = packer.write_all(&plain).and_then(|()| packer.finish()).ok().map(Bytes::from);
        Self { content_type, plain, packed }
    }

    fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let packed = self.packed.as_ref().filter(|_| takes_gzip(request));
        let mut response = etag::document(request, self.content_type, packed.unwrap_or(&self.plain).clone());
        if packed.is_some() && response.status() == StatusCode::OK {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}

/// Adds the page and its files to the routes. They are not part of the interface.
pub(crate) fn add_page(router: &mut Router) {
    for method in [Method::GET, Method::HEAD] {
        for path in SHELL_PATHS {
            router.on(path, method.clone(), |call| Box::pin(shell(call)));
        }
        router.on(ASSET_PATH, method, |call| Box::pin(asset(call)));
    }
}

/// Parameters are the page's own: they say what it shows.
async fn shell(ApiCall { request, .. }: ApiCall) -> Result<HttpResponse> {
    let mut response = PAGE.shell.answer(&request);
    response.headers_mut().insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    Ok(response)
}

/// A file of another hash is one of another release: nobody may keep this one under its name.
async fn asset(ApiCall { request, .. }: ApiCall) -> Result<HttpResponse> {
    let part = |name| request.parameter(name);
    let file = PAGE.asset(part("hash"), part("file")).ok_or_else(|| ApiError::not_found("path"))?;
    let mut response = file.answer(&request);
    response.headers_mut().insert(header::CACHE_CONTROL, IMMUTABLE);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use actix_web::test::TestRequest;
    use flate2::read::GzDecoder;

    use super::*;
    use crate::http::tests::server::TestServer;

    const MOST_SCRIPT_BYTES: usize = 75 * 1_024;
    const MOST_STYLE_BYTES: usize = 12 * 1_024;

    fn asset_paths(page: &str) -> Vec<String> {
        let paths = page.split('"').filter(|text| text.starts_with("/assets/"));
        paths.map(str::to_owned).collect()
    }

    #[actix_web::test]
    async fn the_page_is_served_at_all_its_paths_and_restricts_itself() {
        let server = TestServer::start();
        let page = server.send(TestRequest::with_uri("/")).await;
        let policy = page.headers.get(header::CONTENT_SECURITY_POLICY).unwrap().to_str().unwrap();
        assert!(page.status == 200 && policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        for path in ["/ui", "/ui/", "/ui/a/companies/co_1?period=7d"] {
            let other = server.send(TestRequest::with_uri(path)).await;
            assert!(other.status == 200 && other.body == page.body, "{path}");
        }
        let tag = page.headers.get(header::ETAG).unwrap().clone();
        let again = server.send(TestRequest::with_uri("/").insert_header((header::IF_NONE_MATCH, tag))).await;
        assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
        assert_eq!(server.send(TestRequest::with_uri("/ui").method(Method::POST)).await.status, 405);
    }

    #[actix_web::test]
    async fn the_files_of_the_page_are_small_and_kept_by_browsers_until_they_change() {
        let server = TestServer::start();
        let page = server.send(TestRequest::with_uri("/")).await;
        let page = String::from_utf8(page.body.to_vec()).unwrap();
        let paths = asset_paths(&page);
        assert_eq!(paths.len(), ASSETS.len(), "{page}");
        let (mut script_bytes, mut style_bytes) = (0, 0);
        for path in paths {
            let plain = server.send(TestRequest::with_uri(&path)).await;
            assert_eq!(plain.headers.get(header::CACHE_CONTROL).unwrap(), IMMUTABLE);
            let packed = server.send(TestRequest::with_uri(&path).insert_header((header::ACCEPT_ENCODING, "gzip"))).await;
            let mut unpacked = Vec::new();
            GzDecoder::new(&packed.body[..]).read_to_end(&mut unpacked).unwrap();
            assert!(plain.body == unpacked && !unpacked.is_empty(), "{path}");
            *if path.ends_with(".css") { &mut style_bytes } else { &mut script_bytes } += packed.body.len();
            let former = path.replace(&PAGE.hash, &PAGE.hash.replace(|digit: char| digit != '0', "0"));
            assert_eq!(server.send(TestRequest::with_uri(&former)).await.status, 404);
        }
        assert!(script_bytes <= MOST_SCRIPT_BYTES && style_bytes <= MOST_STYLE_BYTES, "{script_bytes}, {style_bytes}");
    }

    #[test]
    fn the_page_loads_nothing_from_elsewhere() {
        for attribute in ["src=\"http", "href=\"http", "src=\"//", "href=\"//", "<script>", " style="] {
            assert!(!SHELL.contains(attribute), "{attribute}");
        }
    }
}
