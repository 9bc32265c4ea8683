/** Options of `npm run soak`. */
import { parseArgs } from 'node:util'
import { type ProxyName, proxyNames } from '../support/real-proxies.ts'
import { faultNames } from './faults.ts'

export const usage = `npm run soak -- [--minutes M] [--seed N] [--connections C] [--faults NAME,…]
                [--without nginx|haproxy|envoy]

Runs the gateway with two workers between real clients and real servers, causes faults, and checks every
exchange. Prints a summary, and exits with 1 at the first violation.

  --minutes M      how long traffic lasts (default 10)
  --seed N         which requests are sent, and which server a fault hits (default: the time)
  --connections C  exchanges at the same time (default 24)
  --faults NAME,…  only these faults; \`none\` causes none. All of them: ${faultNames.join(', ')}
  --without NAME   leaves a server out, with everything that needs it`

export interface Options {
  readonly minutes: number
  readonly seed: number
  readonly connections: number
  readonly faults: readonly string[]
  readonly programs: readonly ProxyName[]
}

/** @throws Error if an option is invalid */
export function parseOptions(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string', default: `${Date.now() % 1_000_000}` },
      connections: { type: 'string', default: '24' },
      faults: { type: 'string', default: faultNames.join(',') },
      without: { type: 'string', multiple: true, default: [] },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help === true) return 'help'
  const [minutes, seed, connections] = [values.minutes, values.seed, values.connections].map(Number)
  if (!(Number(minutes) > 0)) throw new Error('--minutes takes a number above 0')
  if (!Number.isSafeInteger(seed)) throw new Error('--seed takes a whole number')
  if (!Number.isSafeInteger(connections) || Number(connections) < 1) {
    throw new Error('--connections takes a whole number from 1')
  }
  const faults = values.faults === 'none' ? [] : values.faults.split(',')
  const unknown = faults.find((name) => !faultNames.includes(name))
  if (unknown !== undefined) throw new Error(`unknown fault ${unknown}`)
  const other = values.without.find((name) => !proxyNames.some((known) => known === name))
  if (other !== undefined) throw new Error(`--without takes ${proxyNames.join(', ')}`)
  return {
    minutes: Number(minutes),
    seed: Number(seed),
    connections: Number(connections),
    faults,
    programs: proxyNames.filter((name) => !values.without.includes(name)),
  }
}
