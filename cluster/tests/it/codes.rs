//! Sign-in codes that nodes share.

use headcount_control::MAX_SIGN_IN_CODES_OF_TOKEN;

use crate::node::{Cluster, NOW};

/// The number of codes on the brokers, including used ones.
async fn kept(cluster: &Cluster) -> u64 {
    let client = async_nats::connect(cluster.addresses()).await.unwrap();
    let stream = async_nats::jetstream::new(client).get_stream("KV_hc_codes").await.unwrap();
    stream.cached_info().state.messages
}

#[test]
fn codes_that_are_too_many_leave_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let (maker, other) = (cluster.join("a"), cluster.join("b"));
    let codes = maker.blocking(|engine| {
        let registry = engine.registry();
        let organization = registry.organizations()[0].id;
        let token = registry.tokens(organization).unwrap()[0].token_id.clone();
        let code = |_| registry.create_sign_in_code(organization, &token, NOW).unwrap().0.expose().to_owned();
        (0..3 * MAX_SIGN_IN_CODES_OF_TOKEN).map(code).collect::<Vec<String>>()
    });
    assert_eq!(maker.block_on(kept(&cluster)), MAX_SIGN_IN_CODES_OF_TOKEN as u64);
    let (ended, last) = (codes[0].clone(), codes[codes.len() - 1].clone());
    other.blocking(move |engine| {
        let begin = |code: &str| engine.registry().begin_session_by_code(code, NOW).map(drop);
        assert!(begin(&ended).is_err(), "it was ended");
        begin(&last).unwrap();
        assert!(begin(&last).is_err(), "it was used");
    });
    // A used code is remembered, so that no other node accepts it.
    assert_eq!(maker.block_on(kept(&cluster)), MAX_SIGN_IN_CODES_OF_TOKEN as u64);
    other.stop();
    maker.stop();
}
