//! The script of the tracker.

use std::io::Read;

use actix_web::http::{Method, header};
use actix_web::test::TestRequest;
use flate2::read::GzDecoder;

use crate::http::tests::server::TestServer;

const SCRIPT: &[u8] = include_bytes!("../../../tracker/dist/hc.js");
const MOST_PACKED_BYTES: usize = 2_200;

#[actix_web::test]
async fn pages_of_all_sites_can_load_the_script_and_keep_it() {
    let server = TestServer::start();
    for (uri, encoding) in [("/hc.js?v=2", "identity"), ("/hc.js?key=pk_0&outbound", "br, gzip")] {
        let ask = || TestRequest::with_uri(uri).insert_header((header::ACCEPT_ENCODING, encoding));
        let answer = server.send(ask()).await;
        let tag = answer.headers.get(header::ETAG).unwrap().clone();
        let again = server.send(ask().insert_header((header::IF_NONE_MATCH, tag.clone()))).await;
        assert_eq!((answer.status.as_u16(), again.status.as_u16(), again.body.len()), (200, 304, 0));
        for (name, value) in [
            (header::CACHE_CONTROL, "public, max-age=3600"),
            (header::VARY, "accept-encoding"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
            (header::CROSS_ORIGIN_RESOURCE_POLICY, "cross-origin"),
        ] {
            assert_eq!([&answer, &again].map(|answer| answer.headers.get(&name).unwrap() == value), [true; 2], "{name}");
        }
        assert_eq!(answer.headers.get(header::CONTENT_TYPE).unwrap(), "text/javascript; charset=utf-8");
        let head = server.send(ask().method(Method::HEAD)).await;
        assert_eq!((head.status.as_u16(), head.headers.get(header::ETAG)), (200, Some(&tag)));
    }
}

#[actix_web::test]
async fn the_packed_script_is_small() {
    let server = TestServer::start();
    let packed = server.send(TestRequest::with_uri("/hc.js").insert_header((header::ACCEPT_ENCODING, "gzip"))).await;
    assert_eq!(packed.headers.get(header::CONTENT_ENCODING).unwrap(), "gzip");
    assert!(packed.body.len() <= MOST_PACKED_BYTES, "{} bytes", packed.body.len());
    let mut unpacked = Vec::new();
    GzDecoder::new(&packed.body[..]).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == SCRIPT);
}
