import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePorts } from '../support/gateway.ts'
import { gateway, httpRoute, policy, staticBackend, toBackend } from '../support/manifests.ts'

const ports = await freePorts('edge', 'plain')
const upstream = useUpstream('main')
const add = [
  { name: 'team', expression: 'request.headers["x-team"]' },
  { name: 'code', expression: 'response.code / 100' },
  { name: 'route', expression: '"reserved"' },
  { name: 'team', expression: '"twice"' },
  // Metrics of language models have it.
  { name: 'gen_ai_system', expression: '"reserved"' },
]
const running = useGateway(() => ({
  manifests: [
    gateway(ports.edge, {}, 'edge'),
    gateway(ports.plain, {}, 'plain'),
    policy('labels', 'Gateway/edge', { frontend: { metrics: { attributes: { add } } } }),
    staticBackend('main', upstream.port),
    httpRoute('app', {
      parentRefs: [{ name: 'edge' }, { name: 'plain' }],
      rules: [{ backendRefs: [toBackend('main')] }],
    }),
  ],
}))

const send = (port: number, team?: string) =>
  running.send(port, { path: '/', headers: team === undefined ? {} : { 'x-team': team } })

async function seriesOf(metric: string): Promise<string[]> {
  const stats = /metrics: (http:\S+)/.exec(running.stderr)?.[1] ?? ''
  const lines = (await (await fetch(stats)).text()).split('\n')
  const names = lines
    .filter((line) => /^sluice_/.test(line))
    .map((line) => line.replace(/ \S+$/, ''))
  // Prometheus refuses a page on which a series occurs twice.
  expect(new Set(names).size).toBe(names.length)
  return lines.filter((line) => line.startsWith(`sluice_${metric}{`))
}

describe('labels that a policy adds', () => {
  it('are on the metrics of its Gateway, with the values of the expressions', async () => {
    await send(ports.edge, 'blue "1"')
    await send(ports.edge, 'blue "1"')
    await send(ports.edge)
    await send(ports.plain, 'blue "1"')
    const series = await seriesOf('requests_total')
    const labelled = series.filter((line) => line.includes('gateway="default/edge"'))
    expect(labelled.map((line) => line.replace(/^.*(team=)/, '$1')).sort()).toEqual([
      'team="blue \\"1\\"",code="2"} 2',
      'team="unknown",code="2"} 1',
    ])
    const plain = series.filter((line) => line.includes('gateway="default/plain"'))
    expect(plain).toHaveLength(1)
    expect(plain[0]).not.toContain('team=')
    const durations = await seriesOf('request_duration_seconds_count')
    expect(durations.some((line) => line.includes('team="unknown",code="2"'))).toBe(true)
  })

  it('have a limited number of values', async () => {
    for (let n = 0; n < 110; n++) await send(ports.edge, `team-${n}`)
    const teams = (await seriesOf('requests_total')).flatMap(
      (line) => /team="([^"]*)"/.exec(line)?.[1] ?? [],
    )
    expect(teams).toContain('_OTHER')
    expect(new Set(teams).size).toBeLessThanOrEqual(101)
  })

  it('are refused if requests have them already, or twice', async () => {
    const status = JSON.stringify(await running.status('GatewayPolicy', 'labels'))
    expect(status).toContain(
      'spec.frontend.metrics.attributes.add[2].name: every request already has a label route',
    )
    expect(status).toContain(
      'spec.frontend.metrics.attributes.add[4].name: every request already has a label gen_ai_system',
    )
    expect(status).toContain(
      'spec.frontend.metrics.attributes.add[3].name: a label team is added twice',
    )
  })
})
