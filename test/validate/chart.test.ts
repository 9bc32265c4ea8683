/** `helm template | sluice validate -f -`, with a chart as Helm renders it. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { launcher } from '../support/gateway.ts'
import { chartPath } from '../support/helm.ts'
import { describeWithParts, partPath } from '../support/parts.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-chart-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Renders a copy of the chart with one more template, and validates what Helm prints. */
function validateChart(template: string) {
  const chart = join(folder, 'sluice')
  cpSync(chartPath('sluice'), chart, { recursive: true })
  writeFileSync(join(chart, 'templates', 'route.yaml'), template)
  const command = '"$0" template shop "$1" | "$2" validate -f -'
  const args = ['-o', 'pipefail', '-c', command, partPath('helm'), chart, launcher]
  const { status, stdout, stderr } = spawnSync('bash', args, { encoding: 'utf8' })
  return { status, output: `${stdout}${stderr}` }
}

const route = (matches: string) => `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: {{ .Release.Name }} }
spec:
  parentRefs: [{ name: edge }]
  rules: [{ matches: [${matches}] }]
`

describeWithParts(['helm'], 'a chart that is piped to sluice validate', () => {
  it('is valid, and objects of other kinds are counted', () => {
    const { status, output } = validateChart(route('{ path: { value: /cart } }'))
    expect(output).toMatch(
      /skipped \d+ objects of kinds that Sluice does not read: .*Deployment \(1\)/,
    )
    expect(status).toBe(0)
  })

  it('fails with the object and field of a mistake', () => {
    const { status, output } = validateChart(route('{ path: { value: cart } }'))
    expect(output).toMatch(/HTTPRoute default\/shop: spec\.rules\[0\]\.matches\[0\]\.path/)
    expect(status).toBe(1)
  })
})
