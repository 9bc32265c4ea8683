/**
 * Golden cases: `in.yaml` through the file source and the fold gives `out.yaml`. Write the outputs
 * again with `UPDATE=1 npx vitest run test/flow` and read the difference before it is committed.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runFlow } from '../support/flow.ts'

const cases = readdirSync(import.meta.dirname, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .sort()

const isUpdate = process.env.UPDATE !== undefined

describe('the statuses and resources that are derived from manifests', () => {
  it.each(cases)('are as expected for the case %s', async (name) => {
    const folder = join(import.meta.dirname, name)
    const outputs = await runFlow(folder)
    expect(outputs.size, 'the case has an in.yaml').toBeGreaterThan(0)
    for (const [file, text] of outputs) {
      const path = join(folder, file)
      if (isUpdate) writeFileSync(path, text)
      expect(text, `${name}/${file}`).toBe(existsSync(path) ? readFileSync(path, 'utf8') : '')
    }
  })
})
