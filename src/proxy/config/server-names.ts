/**
 * The hostnames that take a name of a TLS handshake, best first: exact, then the longest wildcard,
 * then every name (Gateway API, Listener hostname). Undefined names are those of clients that send
 * none; only what takes every name takes them.
 */
export function* hostnamesFor(name: string | undefined): Generator<string> {
  if (name !== undefined) {
    const host = name.toLowerCase()
    yield host
    for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
      yield `*${host.slice(dot)}`
    }
  }
  yield ''
}
