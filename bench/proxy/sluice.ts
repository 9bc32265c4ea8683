/** Our own gateway, set up to do the same as the peers of `peers.ts`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Certificate } from '../../test/support/certificates.ts'
import { freePort } from '../../test/support/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  staticBackend,
  tlsSecret,
  toBackend,
} from '../../test/support/manifests.ts'
import { launcher } from '../harness.ts'
import { routing } from './load.ts'
import { type MeasuredProxy, startProxyProcess } from './process.ts'
export interface SluiceOptions {
  /** The command line of the build; that of this checkout if omitted. */
  readonly program?: string
  /** Policies of the backend. */
  readonly policies?: Readonly<Record<string, unknown>>
  /** Default: one. */
  readonly workers?: number
  /** More objects for the manifests. */
  readonly objects?: readonly Readonly<Record<string, unknown>>[]
  /** Which decisions are recorded; none if omitted. */
  readonly record?: string
  /** Certificate of an HTTPS listener. If omitted, the listener is plaintext. */
  readonly certificate?: Certificate
}

const listenerTls = { certificateRefs: [{ name: 'certificate' }] }

/** Ourselves, as a user starts us; `others` routes of other hosts stand beside the measured one. */
export async function startSluice(
  folder: string,
  upstream: number,
  others: number,
  {
    policies,
    workers = 1,
    certificate,
    record = 'off',
    objects: more = [],
    program = launcher,
  }: SluiceOptions = {},
): Promise<MeasuredProxy> {
  const name = workers === 1 ? 'sluice' : `sluice with ${workers} workers`
  const manifests = join(folder, `manifests-${others}-${workers}-${record}`)
  const port = await freePort()
  mkdirSync(manifests)
  const match = {
    path: { type: 'PathPrefix', value: routing.path },
    headers: [{ name: routing.header, value: routing.value }],
  }
  const header = { name: 'x-served-by', value: 'sluice' }
  const route = httpRoute('measured', {
    hostnames: [routing.host],
    rules: [
      {
        matches: [match],
        filters: [{ type: 'ResponseHeaderModifier', responseHeaderModifier: { set: [header] } }],
        backendRefs: [toBackend('shop')],
      },
    ],
  })
  const besides = Array.from({ length: others }, (_, n) =>
    httpRoute(`other-${n}`, {
      hostnames: [`other-${n}.example.com`],
      rules: [{ backendRefs: [toBackend('shop')] }],
    }),
  )
  const listeners = [{ name: 'https', port, protocol: 'HTTPS', tls: listenerTls }]
  const entrance =
    certificate === undefined
      ? [gateway(port)]
      : [gateway(port, { listeners }), tlsSecret('certificate', certificate)]
  const backend = staticBackend('shop', upstream, policies)
  const objects = [...entrance, backend, route, ...besides, ...more]
  writeFileSync(join(manifests, 'all.yaml'), manifest(...objects))
  const own = ['--admin-address', 'off', '--stats-address', '127.0.0.1:0']
  const probe = ['--readiness-address', '127.0.0.1:0', '--bind-address', '127.0.0.1']
  const command = [
    program,
    'run',
    '-f',
    manifests,
    '--ephemeral',
    '--workers',
    `${workers}`,
    '--record',
    record,
    '--record-dir',
    join(manifests, 'decisions'),
    ...own,
    ...probe,
  ]
  return startProxyProcess({ name, version: '', port, command })
}
