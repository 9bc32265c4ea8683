/** The workflows that check, build and publish on GitHub. */
import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { describeWithParts, partPath } from '../support/parts.ts'

const repository = join(import.meta.dirname, '..', '..')
const run = promisify(execFile)

describeWithParts(['actionlint'], 'the workflows of GitHub', () => {
  it('pass actionlint', async () => {
    const files = globSync('.github/workflows/*.yml', { cwd: repository })
    expect(files.length).toBeGreaterThan(1)
    const { stdout } = await run(partPath('actionlint'), files, { cwd: repository })
    expect(stdout).toBe('')
  })

  it('use the scripts of package.json', () => {
    const { scripts } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8'))
    const text = globSync('.github/workflows/*.yml', { cwd: repository })
      .map((file) => JSON.stringify(parse(readFileSync(join(repository, file), 'utf8'))))
      .join('\n')
    const used = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name)
    expect(used.length).toBeGreaterThan(0)
    expect(used.filter((name) => !(`${name}` in scripts))).toEqual([])
  })
})
