import createClient from "./openapi-fetch/index.js";

export function connect({ baseUrl, token, publicKey, headers, ...options }) {
  const credentials = {
    ...(token && { authorization: `Bearer ${token}` }),
    ...(publicKey && { "x-service-pk": publicKey }),
  };
  return createClient({ ...options, baseUrl, headers: { ...credentials, ...headers } });
}
