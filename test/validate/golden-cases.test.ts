/** `sluice validate` on the golden cases of test/flow. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { validate } from '../../src/tools/cli/validate/validate.ts'

const folder = join(import.meta.dirname, '../flow')

/** Their statuses refuse only what lacks other objects, or a cluster; the former are warnings. */
const valid = new Set([
  'backend-policies/in.yaml',
  'backend-refused/in.2.yaml',
  'backend-types/in.yaml',
  'gateway-class/in.yaml',
  'gateway-deleted/in.yaml',
  'gateway-deleted/in.2.yaml',
  'gateway-moves-class/in.yaml',
  'gateway-moves-class/in.2.yaml',
  'gateway-service-addresses/in.yaml',
  'listener-overlapping-tls/in.yaml',
  'listener-set-foreign-parent/in.yaml',
  'listener-set-moves/in.yaml',
  'listener-set-moves/in.2.yaml',
  'policy-attached/in.yaml',
  'policy-many-ancestors/in.yaml',
  'policy-missing-references/in.yaml',
  'policy-missing-references/in.2.yaml',
  'policy-of-asked-servers/in.yaml',
  'policy-of-asked-servers/in.2.yaml',
  'policy-overridden/in.yaml',
  'policy-target-appears/in.yaml',
  'policy-target-appears/in.2.yaml',
  'reference-grant-must-fit/in.yaml',
  'route-accepted/in.yaml',
  'route-backend-appears/in.yaml',
  'route-backend-appears/in.2.yaml',
  'route-mirror/in.yaml',
  'route-reference-grant/in.yaml',
  'route-reference-grant/in.2.yaml',
  'route-reference-grant/in.3.yaml',
  'route-refused/in.2.yaml',
  'route-rule-forms/in.yaml',
  'service-forms/in.yaml',
])

const steps = readdirSync(folder)
  .flatMap((name) => [1, 2, 3].map((step) => `${name}/in${step === 1 ? '' : `.${step}`}.yaml`))
  .filter((path) => existsSync(join(folder, path)))
  .sort()

async function codeOf(path: string): Promise<{ code?: number; lines: readonly string[] }> {
  const options = { file: [join(folder, path)], output: 'text' } as const
  const { exitCode, text } = await validate(options, () => undefined)
  return { code: exitCode, lines: text() }
}

const warning = /in(\.\d)?\.yaml:\d+:\d+: warning: \w+ \S+: spec\.\S+: .* in these files/

describe('sluice validate on the golden cases', () => {
  it.each(steps.filter((path) => valid.has(path)))(
    'accepts %s, which at most refers to missing objects',
    async (path) => {
      const { code, lines } = await codeOf(path)
      expect(code).toBe(0)
      for (const line of lines) expect(line).toMatch(warning)
    },
  )

  it.each(steps.filter((path) => !valid.has(path)))(
    'refuses %s, and reports each problem once',
    async (path) => {
      const { code, lines } = await codeOf(path)
      expect(code).toBe(1)
      expect(new Set(lines).size).toBe(lines.length)
      for (const line of lines) {
        expect(line).toMatch(/in(\.\d)?\.yaml:\d+(:\d+)?: (warning: )?\w+ \S+: [\w.[\]]+/)
      }
    },
  )

  it('has a golden case for every path that it is expected to accept', () => {
    expect(steps).toEqual(expect.arrayContaining([...valid]))
  })
})
