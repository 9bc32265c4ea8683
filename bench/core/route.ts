/**
 * Claim: reading a raw HTTP/1.1 head and choosing one of 10,000 routes in the core costs at most a
 * fifth of the same in JavaScript, and a third of the JavaScript reader with find-my-way.
 * All three see the same bytes and must choose the same route.
 */
import findMyWay from 'find-my-way'
import { createIoCore, type RouteSpec, type RouteTable } from '../../src/engines/core/index.ts'
import { type BenchContext, cpuNanoseconds, interleave, type Row } from '../harness.ts'
import { JsHead, parseHead } from './js-head.ts'
import { JsRoutes } from './js-routes.ts'

const hosts = 1000
const routesPerHost = 10
const heads = 1024
const stride = 1024
const passes = 100
const edits = 2000

/** The path prefix of the n-th route of a host. */
const prefixOf = (n: number) => `/api/v${n % 3}/resource-${n}`
const hostOf = (n: number) => `service-${n}.team-${n % 17}.example.com`

function headOf(n: number): string {
  const host = hostOf((n * 7919) % hosts)
  const path = `${prefixOf((n * 31) % routesPerHost)}/items/${n}?page=${n % 9}&sort=name`
  return [
    `GET ${path} HTTP/1.1`,
    `Host: ${host}`,
    'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)',
    'Accept: application/json, text/plain, */*',
    'Accept-Encoding: gzip, deflate, br',
    'Accept-Language: en-GB,en;q=0.9',
    'Authorization: Bearer 0123456789abcdef0123456789abcdef',
    `X-Request-Id: 00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
    'Connection: keep-alive',
    '\r\n',
  ].join('\r\n')
}

function specOf(host: number, route: number, id: number): RouteSpec {
  const path = { type: 'prefix', value: prefixOf(route) } as const
  const about = { createdAt: 0, name: `ns/${host}`, ruleIndex: route, matchIndex: 0 }
  return { id, scope: 0, hostname: hostOf(host), path, ...about }
}

const core = createIoCore({ memoryPages: 512 })
const record = core.createHead()
const table = core.createRouteTable()
const plain = new JsRoutes()
// One router a host: it takes 31 host constraints a path and no more.
const routers = new Map<string, findMyWay.Instance<findMyWay.HTTPVersion.V1>>()
table.addListener(undefined, 0)
for (let host = 0, id = 0; host < hosts; host++) {
  for (let route = 0; route < routesPerHost; route++, id++) {
    const spec = specOf(host, route, id)
    const hostname = hostOf(host)
    const { path } = spec
    const outcome = table.addRoute(spec)
    if (!outcome.ok) throw new Error(outcome.problems[0]?.message)
    plain.add(hostname, path.value, id)
    const router = routers.get(hostname) ?? findMyWay()
    routers.set(hostname, router)
    router.on('GET', `${path.value}/*`, () => undefined, { id })
  }
}

const buffer = core.allocate(heads * stride)
const bytes = core.bytes
const lengths = Array.from({ length: heads }, (_, n) =>
  bytes.write(headOf(n), buffer + n * stride, 'latin1'),
)
const copy = Buffer.from(bytes.subarray(buffer, buffer + heads * stride))

function throughCore(n: number): number {
  const start = buffer + n * stride
  if (core.parseRequestHead(record, start, start + (lengths[n] ?? 0), 0, 65536) !== 0) return -1
  return table.match(record)
}

const plainHead = new JsHead()

function readPlainly(n: number): boolean {
  return parseHead(copy, n * stride, n * stride + (lengths[n] ?? 0), plainHead)
}

function throughPlain(n: number): number {
  return readPlainly(n) ? plain.match(plainHead.host, plainHead.path) : -1
}

function throughFindMyWay(n: number): number {
  if (!readPlainly(n)) return -1
  const found = routers.get(plainHead.host)?.find('GET', plainHead.path)
  return found ? (found.store as { id: number }).id : -1
}

const runners = { core: throughCore, js: throughPlain, 'find-my-way': throughFindMyWay }
for (let n = 0; n < heads; n++) {
  const ids = Object.values(runners).map((run) => run(n))
  if (ids.some((id) => id < 0 || id !== ids[0])) throw new Error(`head ${n}: ${ids.join(' ')}`)
}

/** Nanoseconds a head, by user and system time of this process. */
function measure(run: (n: number) => number): number {
  let sum = 0
  const spent = cpuNanoseconds(() => {
    for (let pass = 0; pass < passes; pass++) for (let n = 0; n < heads; n++) sum += run(n)
  })
  if (sum <= 0) throw new Error('nothing was matched')
  return spent / (passes * heads)
}

/** Nanoseconds to take one route out of a table and to put it back. */
function measureEdit(edited: RouteTable, id: number, spec: RouteSpec): number {
  return (
    cpuNanoseconds(() => {
      for (let edit = 0; edit < edits; edit++) {
        edited.removeRoute(id)
        if (!edited.addRoute(spec).ok) throw new Error('the route does not come back')
      }
    }) / edits
  )
}

const small = core.createRouteTable()
const editedSpec = specOf(7, 3, 73)
small.addRoute(editedSpec)

export default async function route({ rounds }: BenchContext): Promise<Row[]> {
  const samples = await interleave(rounds, {
    core: () => measure(throughCore),
    js: () => measure(throughPlain),
    'find-my-way': () => measure(throughFindMyWay),
    edit: () => measureEdit(table, 73, editedSpec),
    'edit of one route': () => measureEdit(small, 73, editedSpec),
  })
  const edit: Row = {
    id: 'core.route.edit',
    unit: 'ns',
    own: samples.edit,
    peer: { name: 'a table of that one route', samples: samples['edit of one route'] },
    as: 'cost',
    bound: { atMost: 2 },
    note: 'what a change costs must not grow with the table',
  }
  const reads = (
    [
      ['js', 5],
      ['find-my-way', 3],
    ] as const
  ).map(([peer, bound]) => ({
    id: `core.route.${peer}`,
    unit: 'ns',
    own: samples.core,
    peer: { name: peer, samples: samples[peer] },
    bound: { atLeast: bound },
  }))
  return [...reads, edit]
}
