// Route tables: specifications in, the id of the route for a request out.
import { latin1, utf8 } from './core.mjs'

/** Kind of a hostname, and its bytes: those of a wildcard begin with the dot. */
function hostKey({ HOST_ANY, HOST_WILDCARD, HOST_EXACT }, hostname = '') {
  if (hostname === '') return [HOST_ANY, utf8('')]
  return hostname.startsWith('*.')
    ? [HOST_WILDCARD, utf8(hostname.slice(1))]
    : [HOST_EXACT, utf8(hostname)]
}

export class Routes {
  constructor(core) {
    this.core = core
    this.table = core.check(core.call.table_new())
    this.regexes = []
  }

  addListener(hostname, scope) {
    const { core } = this
    const [kind, bytes] = hostKey(core.constants, hostname)
    core.scoped(() =>
      core.check(core.call.listener_add(this.table, kind, core.put(bytes), bytes.length, scope)),
    )
  }

  /** Words where abi.ts draws them; texts lie behind, named by offset and length. */
  addRoute(route) {
    const { core } = this
    const { constants: abi } = core
    const headers = route.headers ?? []
    const query = route.query ?? []
    const predicates = [...headers, ...query]
    const texts = []
    let end = abi.ROUTE_PREDICATES + predicates.length * abi.PREDICATE_SIZE
    const view = new DataView(new ArrayBuffer(end))
    const word = (offset, value) => view.setInt32(offset, value, true)
    const text = (offset, bytes) => {
      word(offset, end)
      word(offset + 4, bytes.length)
      texts.push(bytes)
      end += bytes.length
    }
    const path = route.path ?? { type: 'prefix', value: '/' }
    const [kind, host] = hostKey(abi, route.hostname)
    word(abi.ROUTE_ID, route.id)
    word(abi.ROUTE_SCOPE, route.scope ?? 0)
    word(abi.ROUTE_HOST_KIND, kind)
    text(abi.ROUTE_HOST, host)
    word(abi.ROUTE_PATH_KIND, abi[`PATH_${path.type.toUpperCase()}`])
    text(abi.ROUTE_PATH, utf8(path.value))
    word(abi.ROUTE_PATH_REGEX, this.#regexOf(path))
    view.setFloat64(abi.ROUTE_CREATED, route.createdAt ?? 0, true)
    text(abi.ROUTE_NAME, utf8(route.name ?? `n/${route.id}`))
    word(abi.ROUTE_RULE, route.ruleIndex ?? 0)
    word(abi.ROUTE_MATCH, route.matchIndex ?? 0)
    text(abi.ROUTE_METHOD, utf8(route.method ?? ''))
    word(abi.ROUTE_FIELD_COUNT, headers.length)
    word(abi.ROUTE_QUERY_COUNT, query.length)
    for (const [index, { name, type, value }] of predicates.entries()) {
      const at = abi.ROUTE_PREDICATES + index * abi.PREDICATE_SIZE
      word(at + abi.PREDICATE_KIND, type === 'regex' ? abi.PREDICATE_PATTERN : abi.PREDICATE_EXACT)
      text(at + abi.PREDICATE_NAME, utf8(name))
      text(at + abi.PREDICATE_VALUE, utf8(value))
      word(at + abi.PREDICATE_REGEX, this.#regexOf({ type, value }))
    }
    core.scoped(() => {
      const spec = core.alloc(end + 16)
      const memory = core.bytes(spec, spec + end)
      memory.set(new Uint8Array(view.buffer))
      let at = view.byteLength
      for (const bytes of texts) {
        memory.set(bytes, at)
        at += bytes.length
      }
      core.check(core.call.route_add(this.table, spec, end))
    })
  }

  #regexOf({ type, value }) {
    if (type !== 'regex') return 0
    const { core } = this
    const source = utf8(value)
    const handle = core.scoped(() =>
      core.check(
        core.call.regex_compile(core.put(source), source.length, core.constants.REGEX_MATCH_ONLY),
      ),
    )
    this.regexes.push(handle)
    return handle
  }

  /** The id of the route, or a code: NO_ROUTE, NO_LISTENER. */
  match({ method = 'GET', authority = 'a', path = '/', query, headers = [] }) {
    const { core } = this
    const { constants: abi } = core
    return core.scoped(() => {
      const size = abi.HEAD_SIZE + headers.length * abi.FIELD_SIZE
      const record = core.alloc(size)
      const place = (offset, string) => {
        const start = core.put(latin1(string))
        core.view.setInt32(record + offset, start, true)
        core.view.setInt32(record + offset + 4, start + string.length, true)
      }
      core.bytes(record, record + abi.HEAD_SIZE).fill(0xff)
      core.view.setInt32(record + abi.HEAD_FIELD_COUNT, headers.length, true)
      core.view.setInt32(record + abi.HEAD_FIELD_LIMIT, headers.length, true)
      core.view.setInt32(record + abi.HEAD_FLAGS, 0, true)
      const colon = authority.indexOf(':', authority.startsWith('[') ? authority.indexOf(']') : 0)
      place(abi.HEAD_METHOD, method)
      place(abi.HEAD_AUTHORITY, authority)
      // As the head reader does it: without the port, and without the dot of an absolute name.
      const host = colon < 0 ? authority : authority.slice(0, colon)
      place(abi.HEAD_HOST, host.replace(/\.$/, ''))
      place(abi.HEAD_PATH, path)
      place(abi.HEAD_TARGET, query === undefined ? path : `${path}?${query}`)
      if (query !== undefined) place(abi.HEAD_QUERY, query)
      for (const [index, [name, value]] of headers.entries()) {
        const field = abi.HEAD_FIELDS + index * abi.FIELD_SIZE
        place(field + abi.FIELD_NAME, name)
        place(field + abi.FIELD_VALUE, value)
        core.view.setInt32(record + field + abi.FIELD_INFO, 0, true)
      }
      return core.call.match_request(this.table, record)
    })
  }

  free() {
    this.core.call.table_free(this.table)
    for (const handle of this.regexes) this.core.call.regex_free(handle)
  }
}
