/** What `rawConfig` says of each setting arrives in the proxy, whatever its pod says by itself. */
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { hiddenSettings } from '../../src/control/desired/deployment/own-settings.ts'
import type { ProxyParameters } from '../../src/control/desired/deployment/parameters.ts'
import { anyEnvironment, type RenderedObject } from '../../src/control/desired/deployment/plan.ts'
import { renderProxy } from '../../src/control/desired/deployment/render.ts'
import { fileName, settingsOfFile } from '../../src/ground/settings/config-file.ts'
import { settings } from '../../src/ground/settings/index.ts'
import { remoteSettings } from '../../src/ground/settings/remote.ts'
import type { SettingRow } from '../../src/ground/settings/table.ts'

const samples = [
  'redis://cache:6379',
  'refuse',
  '7',
  '7s',
  '127.0.0.9:7',
  'json',
  'trace',
  '127.0.0.9',
  'a/b',
  '/p',
  'auto',
  'errors',
  'basic',
  'true',
  'base2_exponential_bucket_histogram',
  'http://127.0.0.1:4318',
  'http/protobuf',
  'team=shop',
  'delta',
  'Same',
  '5000',
]

const rows: readonly SettingRow<unknown>[] = Object.values({ ...settings, ...remoteSettings })

function rendered(parameters: ProxyParameters): readonly RenderedObject[] {
  const plan = {
    namespace: 'shop',
    name: 'edge',
    uid: 'u',
    className: 'agentgateway',
    ports: [{ port: 80, protocol: 'TCP' as const }],
    labels: {},
    annotations: {},
    parameters,
    overlays: {},
  }
  const objects = renderProxy(plan, anyEnvironment)
  if (!objects.ok) throw new Error(objects.problems.join())
  return objects.value
}

/** Texts of settings by variable, as a proxy with these objects reads them. */
function textsOf(objects: readonly RenderedObject[]): Readonly<Record<string, string>> {
  const of = (kind: string) => objects.find((one) => one.kind === kind) as never
  const { data } = of('ConfigMap') as { data: Record<string, string> }
  const { spec } = of('Deployment') as {
    spec: { template: { spec: { containers: { env: { name: string; value?: string }[] }[] } } }
  }
  const env = spec.template.spec.containers[0]?.env ?? []
  const given = env.map(({ name, value = 'from elsewhere' }) => [name, value])
  const { values } = settingsOfFile(parse(data['config.yaml'] ?? ''), rows, 'config.yaml')
  return { ...values, ...Object.fromEntries(given) }
}

const podOf = (parameters: ProxyParameters) => {
  const deployment = rendered(parameters).find(({ kind }) => kind === 'Deployment')
  // biome-ignore lint/suspicious/noExplicitAny: looked into freely
  return (deployment as any).spec.template
}

describe('rawConfig [GatewayParameters.rawConfig]', () => {
  it.each(rows.map((row) => [fileName(row), row] as const))(
    'sets %s on the proxy or is reported as ignored',
    (name, row) => {
      const sample = samples.find((text) => row.read(text) !== undefined)
      if (sample === undefined) throw new Error(`no sample fits ${row.form}`)
      const parameters = { rawConfig: { config: { [name]: sample } } }
      const isHeard = textsOf(rendered(parameters))[row.env] === sample
      // The file cannot name itself, and the identity of a pod is not its to change.
      const isFixed = name === 'config' || hiddenSettings(parameters).includes(name)
      expect(isHeard || isFixed, `${name} is heard, or said to be ignored`).toBe(true)
    },
  )

  it('is overridden by typed fields, which are overridden by environment variables', () => {
    const config = {
      connectionMinTerminationDeadline: '1s',
      terminationGracePeriodSeconds: 9,
      logging: { level: 'trace', format: 'text' },
    }
    const typed = {
      rawConfig: { config },
      shutdown: { min: 2, max: 30 },
      logging: { level: 'warn', format: 'json' as const },
    }
    expect(textsOf(rendered(typed))).toMatchObject({
      CONNECTION_MIN_TERMINATION_DEADLINE: '2s',
      TERMINATION_GRACE_PERIOD_SECONDS: '30',
      RUST_LOG: 'warn',
      LOG_FORMAT: 'json',
    })
    expect(podOf(typed).spec.terminationGracePeriodSeconds).toBe(30)
    const own = { ...typed, env: [{ name: 'RUST_LOG', value: 'off' }] }
    expect(textsOf(rendered(own)).RUST_LOG).toBe('off')
  })

  it('changes the grace period, the probes and the metrics port of the pod', () => {
    const config = {
      terminationGracePeriodSeconds: 9,
      readinessAddress: ':7021',
      statsAddress: ':7020',
    }
    const { metadata, spec } = podOf({ rawConfig: { config } })
    const [container] = spec.containers
    expect(spec.terminationGracePeriodSeconds).toBe(9)
    expect(container.readinessProbe.httpGet.port).toBe(7021)
    expect(container.startupProbe.httpGet.port).toBe(7021)
    expect(container.ports).toEqual([{ name: 'metrics', containerPort: 7020, protocol: 'TCP' }])
    expect(metadata.annotations['prometheus.io/port']).toBe('7020')
    const off = podOf({ rawConfig: { config: { readinessAddress: 'off', statsAddress: 'off' } } })
    expect(off.spec.containers[0].readinessProbe).toBeUndefined()
    expect(off.metadata.annotations['prometheus.io/scrape']).toBeUndefined()
  })
})
