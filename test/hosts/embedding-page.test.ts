/** docs/embedding.md lists every export, and its programs print the documented output. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeWithParts, partPath } from '../support/parts.ts'
import { root } from './files-server.ts'
import { abi, build, tableOfHosts, wasm } from './suites.ts'

const page = readFileSync(join(root, 'docs', 'embedding.md'), 'utf8')

/** The program of the page in a language. */
function programIn(language: string): string {
  const program = new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\``, 'm').exec(page)?.[1]
  if (program === undefined) throw new Error(`the page has no ${language}`)
  return program
}

function print(command: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}) {
  const env = { ...process.env, ...environment }
  const { stdout, stderr } = spawnSync(command, [...args, wasm, abi], { encoding: 'utf8', env })
  return stdout + stderr
}

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-page-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

describe('the page on embedding', () => {
  it('lists every exported function and no other', () => {
    const { exports, texts } = JSON.parse(readFileSync(abi, 'utf8')) as {
      exports: { name: string }[]
      texts: { described: { name: string }[] }
    }
    const names = [...exports, ...texts.described].map(({ name }) => name)
    const rows = [...page.matchAll(/^\|[^|]*\|((?: `[a-z_]+`)+) \|/gm)].map(([, calls]) => calls)
    const named = rows.flatMap((calls) => [...(calls ?? '').matchAll(/`([a-z_]+)`/g)])
    expect(named.map(([, name]) => name).sort()).toEqual(names.sort())
  })

  it('has the number of cases that the tests of each host run', () => {
    expect(page).toContain(tableOfHosts())
  })

  it('mentions only constants that exist', () => {
    const { constants } = JSON.parse(readFileSync(abi, 'utf8')) as { constants: { name: string }[] }
    const known = new Set(constants.map(({ name }) => name))
    const named = [...page.matchAll(/`([A-Z]+_[A-Z_]+)`/g)].map(([, name]) => name ?? '')
    expect(named.filter((name) => !name.endsWith('_') && !known.has(name))).toEqual([])
    expect(named.length).toBeGreaterThan(30)
  })
})

describeWithParts(
  ['python3', 'python-wasmtime'],
  'the Python example on the page on embedding [design.embed]',
  () => {
    it('prints a masked text', () => {
      const file = join(folder, 'page.py')
      writeFileSync(file, programIn('python'))
      const printed = print(partPath('python3'), [file], {
        PYTHONPATH: partPath('python-wasmtime'),
      })
      expect(printed).toBe('write to <EMAIL> today\n')
    })
  },
)

describeWithParts(
  ['go', 'wazero'],
  'the Go example on the page on embedding [design.embed]',
  () => {
    it('prints the dates that it finds', { timeout: 180_000 }, () => {
      writeFileSync(join(folder, 'main.go'), programIn('go'))
      for (const file of ['go.mod', 'go.sum']) {
        copyFileSync(join(root, 'examples', 'embedding', 'go', file), join(folder, file))
      }
      const program = join(folder, 'page')
      const offline = { GOFLAGS: '-mod=readonly', GOPROXY: 'off', CGO_ENABLED: '0' }
      build(partPath('go'), ['build', '-o', program, '.'], folder, offline)
      expect(print(program, [])).toBe('2031-05-04\n2031-05-02\n')
    })
  },
)
