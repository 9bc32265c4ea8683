/** Which header fields and query parameters routes match, and the values that they compare. */

import { FieldDigests } from '../../engines/core/field-digests.ts'
import type { IoCore } from '../../engines/core/io-core.ts'
import { withoutRootDot } from '../../ground/base/root-dot.ts'
import type { RouteResource, VersionedResource } from '../../ground/model/resources.ts'
import type { SimulatedExchange } from './exchange.ts'
import type { SimulatedHeader } from './types.ts'

/** A field that routes match on one port. */
interface Matched {
  readonly isQuery: boolean
  /** In lower case, unless it is a parameter of the query. */
  readonly name: string
  readonly isExact: boolean
  /** Hostnames for which the field is matched. */
  readonly hosts: Set<string>
  /** Endings of hostnames with wildcards. */
  readonly endings: Set<string>
}

/** Content types by which errors are sent as gRPC statuses. */
const grpcTypes = ['application/grpc', 'application/grpc+proto']

export class HeaderMatches {
  readonly #byPort = new Map<number, Map<string, Matched>>()
  /** Values by their digests; undefined if there is no key. */
  readonly #values: ReadonlyMap<string, string> | undefined

  constructor(
    resources: readonly VersionedResource[],
    digestKey: Uint8Array | undefined,
    core: IoCore,
  ) {
    const values = new Set(grpcTypes)
    const ports = portsOf(resources)
    for (const { resource } of resources) {
      if (resource.type === 'route') this.#add(resource, ports, values)
    }
    this.#values = digestKey && digestsOf([...values], digestKey, core)
  }

  #add(route: RouteResource, ports: ReadonlyMap<string, number>, values: Set<string>): void {
    for (const { headers } of route.matches) {
      for (const { type, value } of headers) if (type === 'Exact') values.add(value)
    }
    for (const { listener, hostnames } of route.attachments) {
      const port = ports.get(listener)
      if (port === undefined) continue
      const known = this.#byPort.get(port) ?? new Map<string, Matched>()
      for (const field of fieldsOf(route)) addHosts(known, field, hostnames)
      if (known.size > 0) this.#byPort.set(port, known)
    }
  }

  /** Finds the value of a field by its digest, if routes compare the field to that value. */
  findValue({ digest }: SimulatedHeader): string | undefined {
    return digest === undefined ? undefined : this.#values?.get(digest)
  }

  /** Why the route of a request cannot be found; undefined if it can. */
  problemOf({ request, port, input }: SimulatedExchange): string | undefined {
    if (request.problem !== undefined) return request.problem
    const matches = this.#byPort.get(port)
    if (matches === undefined) return undefined
    const host = withoutRootDot(input.host.replace(/:\d*$/, '')).toLowerCase()
    for (const matched of matches.values()) {
      if (!accepts(matched, host)) continue
      const { isQuery, name, isExact } = matched
      const problem = isQuery
        ? queryProblem(request.isHidden(name))
        : this.#headerProblem(request.headers.problemOf(name), isExact, name, input.headers)
      if (problem !== undefined) return problem
    }
    return undefined
  }

  /** If a field is not equal to any value of a route, no exact match needs its value. */
  #headerProblem(
    problem: string | undefined,
    isExact: boolean,
    name: string,
    headers: readonly SimulatedHeader[],
  ): string | undefined {
    if (problem === undefined) return undefined
    const isCompared =
      this.#values !== undefined &&
      headers.every((header) => {
        return header.name.toLowerCase() !== name || (header.value ?? header.digest) !== undefined
      })
    return isExact && isCompared && problem.endsWith('not recorded') ? undefined : problem
  }
}

const queryProblem = (isHidden: boolean) =>
  isHidden ? 'a credential in the query is not recorded' : undefined

function portsOf(resources: readonly VersionedResource[]): Map<string, number> {
  return new Map(
    resources.flatMap(({ resource }) =>
      resource.type === 'listener' ? [[resource.key, resource.port] as const] : [],
    ),
  )
}

type Field = Pick<Matched, 'isQuery' | 'name' | 'isExact'>

function fieldsOf({ matches }: RouteResource): Field[] {
  return matches.flatMap(({ headers, query }) => [
    ...headers.map(({ name, type }) => {
      return { isQuery: false, name: name.toLowerCase(), isExact: type === 'Exact' }
    }),
    ...query.map(({ name, type }) => ({ isQuery: true, name, isExact: type === 'Exact' })),
  ])
}

function addHosts(known: Map<string, Matched>, field: Field, hostnames: readonly string[]): void {
  const key = `${field.isQuery} ${field.isExact} ${field.name}`
  const matched = known.get(key) ?? { ...field, hosts: new Set(), endings: new Set() }
  known.set(key, matched)
  for (const hostname of hostnames) {
    if (hostname.startsWith('*.')) matched.endings.add(hostname.slice(1))
    else matched.hosts.add(hostname)
  }
}

function accepts({ hosts, endings }: Matched, host: string): boolean {
  if (hosts.has('') || hosts.has(host)) return true
  for (const ending of endings) if (host.endsWith(ending)) return true
  return false
}

/** Fields that are digested at once. */
const batch = 64

/** Digests the values, as the recorder does, and returns them by their digests in hex. */
function digestsOf(values: readonly string[], key: Uint8Array, core: IoCore): Map<string, string> {
  const digests = new FieldDigests(core, key)
  const found = new Map<string, string>()
  for (let from = 0; from < values.length; from += batch) {
    const some = values.slice(from, from + batch)
    const spans = new Int32Array(some.length * 5)
    let end = 0
    some.forEach((value, at) => {
      spans.set([end, end, end, end + value.length, 0], at * 5)
      end += value.length
    })
    digests.load(Buffer.from(some.join(''), 'latin1'), 0, spans, some.length)
    digests.digestEach(spans)
    for (let at = 0; at < digests.count; at++) {
      const start = digests.valueAt(at)
      found.set(core.bytes.toString('hex', start, start + 8), some[at] ?? '')
    }
  }
  return found
}
