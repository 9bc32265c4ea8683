/**
 * Claim: a usual condition is evaluated in at most 60 ns, at least 4 times as fast as by the evaluator
 * of the library whose parser we use. All see the same values and must give the same result; ours
 * reads headers and request through views, as it does in the proxy, the others plain objects.
 */
import { celEnv, parse as parseWithPeer, plan } from '@bufbuild/cel'
import { Environment } from '@marcbachmann/cel-js'
import {
  type Activation,
  CelView,
  compileCel,
  gatewayVariables,
  HeadersView,
} from '../src/engines/cel/index.ts'
import { type BenchContext, cpuNanoseconds, interleave, type Row } from './harness.ts'

const expressions = {
  header: 'request.headers["x-team"] == "a" && jwt.sub.startsWith("u-")',
  path: 'request.headers["x-team"] == "a" && request.path.startsWith("/a")',
  list: '["admin", "editor"].exists(role, role in jwt.roles)',
  arithmetic: 'jwt.level > 3.5 || size(jwt.roles) > 5',
} as const

type Name = keyof typeof expressions

const fields: Readonly<Record<string, string>> = { 'x-team': 'a', host: 'example.com' }
const jwt = { sub: 'u-17', level: 3, roles: ['viewer', 'editor'] }
const plain = { request: { headers: fields, path: '/a/b', method: 'GET' }, jwt }

const store = new Map(Object.entries(fields))
const source = { get: (name: string) => store.get(name), names: () => [...store.keys()] }
const headers = new HeadersView(source, new Set())

class RequestView extends CelView {
  override field(name: string) {
    switch (name) {
      case 'headers':
        return headers
      case 'path':
        return '/a/b'
      case 'method':
        return 'GET'
      default:
        return undefined
    }
  }

  override fieldNames() {
    return ['headers', 'path', 'method']
  }
}

const request = new RequestView()

const activation: Activation = {
  lookup(name) {
    switch (name) {
      case 'request':
        return request
      case 'jwt':
        return jwt
      default:
        return undefined
    }
  },
}

type Evaluate = () => unknown

function evaluators(name: Name): Record<'own' | 'library' | 'peer', Evaluate> {
  const text = expressions[name]
  const outcome = compileCel(text, { variables: gatewayVariables })
  if (!outcome.ok) throw new Error(outcome.problems[0]?.message)
  const { value: program } = outcome
  const library = new Environment({ unlistedVariablesAreDyn: true }).parse(text)
  const peer = plan(celEnv(), parseWithPeer(text))
  const all = {
    own: () => program.evaluate(activation),
    library: () => library(plain),
    peer: () => peer(plain),
  }
  const results = [all.own(), all.library(), all.peer()]
  if (new Set(results).size !== 1) throw new Error(`${text}: ${results.join(', ')}`)
  return all
}

/** Nanoseconds of one evaluation. */
function measure(evaluate: Evaluate, count: number): number {
  let trues = 0
  const time = cpuNanoseconds(() => {
    for (let i = 0; i < count; i++) if (evaluate() === true) trues++
  })
  if (trues > count) throw new Error('more results than evaluations')
  return time / count
}

export default async function bench({ quick, rounds }: BenchContext): Promise<readonly Row[]> {
  const count = quick ? 100_000 : 1_000_000
  const rows: Row[] = []
  for (const name of Object.keys(expressions) as Name[]) {
    const { own, library, peer } = evaluators(name)
    const samples = await interleave(rounds, {
      own: () => measure(own, count),
      library: () => measure(library, count / 4),
      peer: () => measure(peer, count / 4),
    })
    const bound = { atLeast: 4 }
    rows.push(
      {
        id: `cel.${name}.library`,
        unit: 'ns',
        own: samples.own,
        peer: { name: '@marcbachmann/cel-js', samples: samples.library },
        as: 'speedup',
        ...(name === 'header' && { bound }),
      },
      {
        id: `cel.${name}.other`,
        unit: 'ns',
        own: samples.own,
        peer: { name: '@bufbuild/cel', samples: samples.peer },
        as: 'speedup',
      },
    )
    if (name === 'header') {
      rows.push({ id: 'cel.header', unit: 'ns', own: samples.own, bound: { atMost: 60 } })
    }
  }
  return rows
}
