import { describe, expect, it } from 'vitest'
import * as abi from '../../src/engines/core/index.ts'
import {
  type AssignedRequest,
  createIoCore,
  type RouteSpec,
  type RouteTable,
} from '../../src/engines/core/index.ts'
import fc from '../support/fast-check.ts'
import { readCaseFiles } from './case-files.ts'
import { type Listener, referenceMatch } from './route-reference.ts'

interface RouteCase {
  readonly title: string
  /** Hostname ('' for any) and scope; default: any hostname has scope 0. */
  readonly listeners?: readonly (readonly [string, number])[]
  /** Missing keys: scope 0, path prefix /, createdAt 0, name `n/<id>`, indexes 0. */
  readonly routes: readonly (Partial<RouteSpec> & { id: number })[]
  readonly requests: readonly (Partial<Omit<AssignedRequest, 'headers'>> & {
    headers?: [string, string][]
    expect: number | 'NO_ROUTE' | 'NO_LISTENER'
  })[]
}

const core = createIoCore({ memoryPages: 512 })
const head = core.createHead({ textBytes: 32768 })

const everyHost: NonNullable<RouteCase['listeners']> = [['', 0]]

function completeRoute(route: RouteCase['routes'][number]): RouteSpec {
  const path = { type: 'prefix', value: '/' } as const
  const rest = { scope: 0, path, createdAt: 0, ruleIndex: 0, matchIndex: 0 }
  return { ...rest, name: `n/${route.id}`, ...route }
}

function completeRequest(request: Partial<AssignedRequest>): AssignedRequest {
  return { method: 'GET', authority: 'a', path: '/', query: undefined, headers: [], ...request }
}

function tableOf(listeners: readonly Listener[], routes: readonly RouteSpec[]): RouteTable {
  const table = core.createRouteTable()
  for (const { hostname, scope } of listeners) {
    expect(table.addListener(hostname, scope)).toMatchObject({ ok: true })
  }
  for (const route of routes) expect(table.addRoute(route)).toMatchObject({ ok: true })
  return table
}

function match(table: RouteTable, request: AssignedRequest): number | string {
  if (!head.assign(request)) throw new Error('the request does not fit the record')
  const id = table.match(head)
  return id < 0 ? abi.nameOfCode(id) : id
}

for (const { name, about, cases } of readCaseFiles<RouteCase>('routes')) {
  describe(`${name}: ${about}`, () => {
    for (const { title, listeners = everyHost, routes, requests } of cases) {
      it(title, () => {
        const specs = routes.map(completeRoute)
        const owners = listeners.map(([hostname, scope]) => ({ hostname, scope }))
        const table = tableOf(owners, specs)
        for (const { expect: wanted, ...request } of requests) {
          const complete = completeRequest(request)
          expect(match(table, complete), JSON.stringify(request)).toBe(wanted)
          // The reference compares characters, which are bytes in ASCII alone.
          if (!/^[\0-\x7f]*$/.test(JSON.stringify(request))) continue
          expect(referenceMatch(owners, specs, complete), JSON.stringify(request)).toBe(wanted)
        }
        table.free()
      })
    }
  })
}

// Few distinct parts, so that random routes meet, shadow and tie with one another.
const hostname = fc.constantFrom('a.b.c', 'b.c', '*.c', '*.b.c', 'x.c', '*.x.c', 'A.B.C', '')
const path = fc.oneof(
  fc
    .array(fc.constantFrom('a', 'ab', 'b', '', 'a%20'), { maxLength: 4 })
    .map((parts) => `/${parts.join('/')}`)
    .chain((value) => fc.constantFrom('exact', 'prefix').map((type) => ({ type, value }))),
  fc.constantFrom('/a.*', '/[ab]+', '/a/b?', '.*').map((value) => ({ type: 'regex', value })),
) as fc.Arbitrary<RouteSpec['path']>
const predicate = fc.record({
  name: fc.constantFrom('x', 'X-Y', 'z'),
  type: fc.constantFrom('exact', 'regex'),
  value: fc.constantFrom('1', '2', '1+', 'a b'),
}) as fc.Arbitrary<{ name: string; type: 'exact' | 'regex'; value: string }>
const predicates = fc.array(predicate, { maxLength: 2 })
const route = fc.record({
  scope: fc.constantFrom(0, 1),
  hostname,
  path,
  method: fc.constantFrom(undefined, undefined, 'GET', 'POST'),
  headers: predicates,
  query: predicates,
  createdAt: fc.constantFrom(0, 1, 2),
  name: fc.constantFrom('a/b', 'a-b/c', 'a/b-c', 'b/a'),
  ruleIndex: fc.constantFrom(0, 1),
})
const routes = fc
  .array(route, { maxLength: 25 })
  .map((list) => list.map((each, id) => ({ ...each, id, matchIndex: id })))
const request = fc.record({
  method: fc.constantFrom('GET', 'POST', 'get'),
  authority: fc.constantFrom('a.b.c', 'A.b.C:80', 'b.c', 'c', 'q.x.c', 'y.b.c', '.c', ''),
  path: fc
    .array(fc.constantFrom('a', 'ab', 'b', '', 'a%20'), { maxLength: 5 })
    .map((parts) => `/${parts.join('/')}`),
  query: fc.constantFrom(
    undefined,
    '',
    'x=1',
    'x=2&x=1',
    'z=a+b&X-Y=11',
    'x',
    '%78=%31',
    'z=a%20b',
  ),
  headers: fc.array(
    fc.tuple(
      fc.constantFrom('x', 'X', 'x-y', 'Z', 'z'),
      fc.constantFrom('1', '11', '2', 'a b', ''),
    ),
    { maxLength: 3 },
  ),
}) as fc.Arbitrary<AssignedRequest>
const listeners: readonly Listener[] = [
  { hostname: '*.c', scope: 0 },
  { hostname: '*.b.c', scope: 1 },
  { hostname: undefined, scope: 1 },
]
const requests = fc.array(request, { minLength: 1, maxLength: 12 })

describe('the route table', () => {
  it('selects the same route as a plain implementation of the Gateway API precedence', () => {
    fc.assert(
      fc.property(routes, requests, (specs, wanted) => {
        const table = tableOf(listeners, specs)
        for (const each of wanted) {
          expect(match(table, each)).toBe(referenceMatch(listeners, specs, each))
        }
        table.free()
      }),
      { numRuns: 600, seed: 20261 },
    )
  })

  it('selects the same route whether it was edited step by step or built at once', () => {
    const edited = tableOf(listeners, [])
    let present: RouteSpec[] = []
    let nextId = 0
    const edits = fc.array(fc.oneof(route, fc.nat(40)), { minLength: 1, maxLength: 30 })
    fc.assert(
      fc.property(edits, requests, (steps, wanted) => {
        for (const step of steps) {
          if (typeof step === 'number') {
            const gone = present[step % Math.max(1, present.length)]
            expect(edited.removeRoute(gone?.id ?? -1)).toBe(gone !== undefined)
            present = present.filter((each) => each !== gone)
          } else {
            const spec = { ...step, id: nextId, matchIndex: nextId++ }
            present =
              present.length > 60 ? present.filter((each) => !edited.removeRoute(each.id)) : present
            expect(edited.addRoute(spec)).toMatchObject({ ok: true })
            present = [...present, spec]
          }
        }
        const anew = tableOf(listeners, [...present].reverse())
        expect(edited.size).toBe(present.length)
        for (const each of wanted) expect(match(edited, each)).toBe(match(anew, each))
        anew.free()
      }),
      { numRuns: 300, seed: 20262 },
    )
    edited.free()
  })

  it('uses no more memory after routes are added and removed many times', () => {
    const spec = completeRoute({
      id: 1,
      hostname: '*.example.com',
      path: { type: 'regex', value: '/a+' },
    })
    const table = tableOf([{ hostname: undefined, scope: 0 }], [spec])
    table.removeRoute(1)
    const before = core.untouchedBytes
    for (let round = 0; round < 2000; round++) {
      if (!table.addRoute(spec).ok || !table.removeRoute(1)) throw new Error(`round ${round}`)
    }
    expect(core.untouchedBytes).toBe(before)
    table.free()
  })

  it('refuses invalid routes and listeners, and stays unchanged', () => {
    const good = completeRoute({ id: 1 })
    const table = tableOf([{ hostname: undefined, scope: 0 }], [good])
    const long = 'a'.repeat(256)
    const many = Array.from(
      { length: 65 },
      () => ({ name: 'a', type: 'exact', value: 'b' }) as const,
    )
    const codes = [
      good,
      { ...good, id: -1 },
      { ...good, id: 2, scope: -1 },
      { ...good, id: 2, hostname: long },
      { ...good, id: 2, path: { type: 'exact', value: 'a' } as const },
      { ...good, id: 2, path: { type: 'prefix', value: '' } as const },
      { ...good, id: 2, path: { type: 'regex', value: '(' } as const },
      { ...good, id: 2, path: { type: 'regex', value: '(?=a)' } as const },
      { ...good, id: 2, headers: many },
    ].map((spec) => {
      const outcome = table.addRoute(spec)
      return outcome.ok ? 'taken' : abi.nameOfCode(outcome.problems[0]?.code ?? 0)
    })
    expect(codes).toEqual([
      'ERROR_DUPLICATE',
      ...Array.from({ length: 5 }, () => 'ERROR_ARGUMENT'),
      'REGEX_UNBALANCED_PAREN',
      'REGEX_LOOKAROUND',
      'ERROR_ARGUMENT',
    ])
    expect(table.addListener(undefined, 3)).toMatchObject({ ok: false })
    expect(table.addListener('*.b', 1)).toMatchObject({ ok: true })
    expect(table.addListener('*.B', 1)).toMatchObject({ ok: false })
    expect([table.removeListener('*.b'), table.removeListener('*.b')]).toEqual([true, false])
    expect(match(table, completeRequest({}))).toBe(1)
    expect(core.exports.route_count(4)).toBe(abi.ERROR_ARGUMENT)
    table.free()
    expect(() => match(table, completeRequest({}))).toThrow('ERROR_ARGUMENT')
  })

  it('reports ERROR_MEMORY once its memory is full, and keeps matching its routes', () => {
    const small = createIoCore({ memoryPages: 8 })
    const record = small.createHead({ textBytes: 1024 })
    const table = small.createRouteTable()
    table.addListener(undefined, 0)
    let refused: number | undefined
    let count = 0
    for (; refused === undefined && count < 100_000; count++) {
      const value = `/${'x'.repeat(count % 50)}/${count}`
      const outcome = table.addRoute(completeRoute({ id: count, path: { type: 'exact', value } }))
      if (!outcome.ok) refused = outcome.problems[0]?.code
    }
    expect(refused).toBe(abi.ERROR_MEMORY)
    expect(count).toBeGreaterThan(500)
    for (let id = 0; id < count - 1; id++) {
      record.assign(completeRequest({ path: `/${'x'.repeat(id % 50)}/${id}` }))
      if (table.match(record) !== id) throw new Error(`route ${id} is lost`)
    }
    expect(table.removeRoute(0)).toBe(true)
    expect(
      table.addRoute(completeRoute({ id: 0, path: { type: 'exact', value: '//0' } })),
    ).toMatchObject({ ok: true })
  })

  it('keeps its listeners and routes if it is copied to another instance', () => {
    const specs = [
      completeRoute({ id: 1, hostname: '*.b' }),
      completeRoute({ id: 2, hostname: 'a.b', path: { type: 'regex', value: '/[0-9]+' } }),
    ]
    const table = tableOf([{ hostname: '*.b', scope: 0 }], specs)
    const other = createIoCore({ memoryPages: 64 })
    const copy = table.copyTo(other)
    const record = other.createHead({ textBytes: 1024 })
    const ids = ['/12', '/x'].map((path) => {
      record.assign(completeRequest({ authority: 'a.b', path }))
      return copy.match(record)
    })
    expect(ids).toEqual([2, 1])
    table.free()
  })

  it('matches header predicates on the method, the target and the authority', () => {
    const ask = (id: number, name: string, value: string) =>
      completeRoute({ id, headers: [{ name, type: 'exact', value }], createdAt: id })
    const table = tableOf(
      [{ hostname: undefined, scope: 0 }],
      [
        ask(1, ':method', 'PUT'),
        ask(2, ':PATH', '/p?q'),
        ask(3, ':path', '/p'),
        ask(4, 'Host', 'h:1'),
      ],
    )
    const ids = [
      { method: 'PUT' },
      { path: '/p', query: 'q' },
      { path: '/p' },
      { authority: 'h:1' },
      // The dot of an absolute name makes no other host; two dots do.
      { authority: 'h.:1' },
      { authority: 'h..:1' },
      { authority: 'h.' },
      { authority: 'h', headers: [['host', 'h:1'] as const] },
    ].map((request) => match(table, completeRequest(request)))
    expect(ids).toEqual([1, 2, 3, 4, 4, 'NO_ROUTE', 'NO_ROUTE', 'NO_ROUTE'])
    table.free()
  })

  it('matches a request that was parsed from HTTP/1.1 bytes', () => {
    const spec = completeRoute({
      id: 5,
      hostname: 'api.example.com',
      path: { type: 'prefix', value: '/v1' },
      method: 'POST',
      headers: [{ name: 'X-Tenant', type: 'exact', value: 'acme' }],
      query: [{ name: 'model', type: 'regex', value: 'g[a-z]+' }],
    })
    const table = tableOf([{ hostname: '*.example.com', scope: 0 }], [spec])
    const bytes =
      'POST /v1/chat?a=b&model=g%70t HTTP/1.1\r\nHost: API.example.com:80\r\nx-tenant: acme\r\n\r\n'
    const input = core.allocate(1024)
    core.bytes.write(bytes, input, 'latin1')
    expect(core.parseRequestHead(head, input, input + bytes.length, 0, 1024)).toBe(0)
    expect(table.match(head)).toBe(5)
    expect([head.scope, head.route, table.matchListener(head)]).toEqual([0, 5, 0])
    expect(table.matchInScope(1, head)).toBe(abi.NO_ROUTE)
    table.free()
  })
})
