/**
 * Golden cases: `values.in.yaml` through helm gives `manifests.out.yaml`. Write the outputs anew
 * with `UPDATE=1 npx vitest run test/charts` and read the difference before it is committed.
 */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { launcher } from '../support/gateway.ts'
import { chartPath, templateText } from '../support/helm.ts'
import { describeWithParts, partPath } from '../support/parts.ts'

const cases = readdirSync(import.meta.dirname, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .sort()

describeWithParts(['helm'], 'the manifests that the charts render', () => {
  it.each(cases)('are as expected for the values %s', async (name) => {
    const folder = join(import.meta.dirname, name)
    const values = parse(readFileSync(join(folder, 'values.in.yaml'), 'utf8'))
    const text = await templateText('sluice', values)
    const path = join(folder, 'manifests.out.yaml')
    if (process.env.UPDATE !== undefined) writeFileSync(path, text)
    expect(text, name).toBe(existsSync(path) ? readFileSync(path, 'utf8') : '')
  })

  it.each(['sluice', 'sluice-crds', 'sluice-standalone'])(
    'pass helm lint in strict mode (%s)',
    async (chart) => {
      const { stdout } = await promisify(execFile)(partPath('helm'), [
        'lint',
        '--strict',
        chartPath(chart),
      ])
      expect(stdout).not.toMatch(/WARNING|ERROR/)
    },
  )

  it.each([
    ['sluice', 'ClusterRole (', 'every object is valid'],
    ['sluice-crds', 'CustomResourceDefinition (', 'no object was found'],
  ])(
    'can be piped into sluice validate, which counts the kinds that it does not read (%s)',
    async (chart, skipped, result) => {
      const pipeline = `"${partPath('helm')}" template "${chartPath(chart)}" | "${launcher}" validate -f -`
      const { stdout, stderr } = await promisify(execFile)('sh', ['-ec', pipeline])
      expect(stdout).toBe('')
      const lines = stderr.trim().split('\n')
      expect(lines).toEqual([result, expect.stringMatching(/^skipped \d+ objects of kinds that /)])
      expect(lines[1]).toContain(skipped)
    },
  )
})

describe('the definitions of our kinds', () => {
  it('fit into the annotation in which kubectl apply keeps a copy', () => {
    const annotationBytes = 262_144
    const folder = join(chartPath('sluice-crds'), 'templates')
    const files = readdirSync(folder).filter((file) => file.endsWith('.sluice.dev.yaml'))
    expect(files.length).toBeGreaterThan(4)
    const sizeOf = (file: string) =>
      Buffer.byteLength(JSON.stringify(parse(readFileSync(join(folder, file), 'utf8'))))
    expect(files.filter((file) => sizeOf(file) > annotationBytes * 0.98)).toEqual([])
  })
})
