import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { withReferences } from './secret-references.ts'

const variables: Record<string, string> = { OPENAI_API_KEY: 'sk-1', _x9: 'two $& words', EMPTY: '' }
const folder = mkdtempSync(join(tmpdir(), 'sluice-references-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const fill = (object: object) =>
  withReferences(object as Record<string, unknown>, join(folder, 'manifest.yaml'), {
    variable: (name) => variables[name],
    folderOf: dirname,
    isOfGateway: true,
  })
const secret = (value: unknown) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  stringData: { key: value },
})

describe('values of Secrets from the environment', () => {
  it.each([
    [`\${env:OPENAI_API_KEY}`, 'sk-1'],
    [`Bearer \${env:OPENAI_API_KEY}`, 'Bearer sk-1'],
    [`\${env:_x9}-\${env:OPENAI_API_KEY}`, 'two $& words-sk-1'],
    [`$\${env:OPENAI_API_KEY}`, `\${env:OPENAI_API_KEY}`],
    [`$\${env:no end`, `\${env:no end`],
    ['$env', '$env'],
    [`\${OPENAI_API_KEY}`, `\${OPENAI_API_KEY}`],
    [`\${{env:OPENAI_API_KEY}}`, `\${{env:OPENAI_API_KEY}}`],
  ])('reads %s as %s', (written, value) => {
    expect(fill(secret(written))).toEqual({ object: secret(value), problems: [], files: [] })
  })

  it.each([
    [`\${env:MISSING}`, 'environment variable MISSING is not set'],
    [`\${env:EMPTY}`, 'environment variable EMPTY is empty'],
    [`\${env:}`, `expected \${env:NAME} with the name of an environment variable`],
    [`\${env:A-B}`, `expected \${env:NAME} with the name of an environment variable`],
    [`\${env:OPENAI_API_KEY`, `expected \${env:NAME} with the name of an environment variable`],
  ])('does not read %s: %s', (written, message) => {
    const { problems } = fill(secret(written))
    expect(problems).toEqual([{ path: 'stringData["key"]', message }])
  })

  it('changes only stringData of Secrets', () => {
    const text = `\${env:OPENAI_API_KEY}`
    for (const object of [
      { apiVersion: 'v1', kind: 'ConfigMap', stringData: { key: text } },
      { apiVersion: 'v1', kind: 'Secret', data: { key: text } },
      { apiVersion: 'v1', kind: 'Secret', stringData: [text] },
      secret(7),
    ]) {
      expect(fill(object)).toEqual({ object, problems: [], files: [] })
    }
  })

  it('puts a whole file into a ConfigMap, and reads nothing else there', () => {
    writeFileSync(join(folder, 'api.yaml'), 'openapi: 3.1.0\n')
    const map = (value: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', data: { key: value } })
    expect(fill(map(`\${file:api.yaml}`))).toEqual({
      object: map('openapi: 3.1.0'),
      problems: [],
      files: [join(folder, 'api.yaml')],
    })
    for (const text of [`\${env:OPENAI_API_KEY}`, `see \${file:api.yaml}`, `$\${file:api.yaml}`]) {
      expect(fill(map(text))).toEqual({ object: map(text), problems: [], files: [] })
    }
    expect(fill(map(`\${file:none.yaml}`)).problems).toEqual([
      { path: 'data["key"]', message: expect.stringContaining('none.yaml cannot be read') },
    ])
  })

  it('is linear in a long text', () => {
    const { problems } = fill(secret(`\${env:`.repeat(100_000)))
    expect(problems.length).toBeGreaterThan(0)
  })
})

describe('values of Secrets from files', () => {
  const write = (name: string, content: string | Uint8Array) =>
    writeFileSync(join(folder, name), content)
  const largest = 1_048_576

  it.each([
    ['sk-1', `\${file:key}`, 'sk-1'],
    ['sk-1\n', `Bearer \${file:./key}`, 'Bearer sk-1'],
    ['sk-1\r\n', `\${file:${folder}/key}`, 'sk-1'],
    ['a\n\nb\n\n', `\${file:key}`, 'a\n\nb\n'],
    ['$& $1 schlüssel', `\${file:key}`, '$& $1 schlüssel'],
    [`\${env:OPENAI_API_KEY}`, `\${file:key}`, `\${env:OPENAI_API_KEY}`],
    ['x'.repeat(largest), `\${file:key}`, 'x'.repeat(largest)],
  ])('are the text without the last line break: %j', (content, written, value) => {
    write('key', content)
    const { object, problems, files } = fill(secret(written))
    expect(problems).toEqual([])
    expect(object).toEqual(secret(value))
    expect(files).toEqual([join(folder, 'key')])
  })

  it.each([
    ['missing', 'cannot be read: no such file or folder'],
    ['folder', 'cannot be read: not a regular file'],
    ['empty', 'is empty'],
    ['line', 'is empty'],
    ['binary', 'is not text in UTF-8'],
    ['large', 'cannot be read: more than 1048576 bytes'],
  ])('are refused: %s', (name, message) => {
    if (name === 'folder') mkdirSync(join(folder, name))
    if (name === 'empty') write(name, '')
    if (name === 'line') write(name, '\n')
    if (name === 'binary') write(name, Uint8Array.of(0x73, 0xff))
    if (name === 'large') write(name, 'x'.repeat(largest + 1))
    const { problems, files } = fill(secret(`\${file:${name}}`))
    const path = join(folder, name)
    expect(problems).toEqual([{ path: 'stringData["key"]', message: `file ${path} ${message}` }])
    expect(files).toEqual([path])
  })

  it('may have a bounded number of bytes together', () => {
    write('half', 'x'.repeat(largest / 2))
    expect(fill(secret(`\${file:half}`.repeat(2))).problems).toEqual([])
    expect(fill(secret(`\${file:half}`.repeat(3))).problems[0]?.message).toContain('together')
  })

  it.each([`\${file:}`, `\${file:key`, `\${file: }`])('need a path: %s', (written) => {
    const message = `expected \${file:PATH} with the path of a file`
    expect(fill(secret(written)).problems).toEqual([{ path: 'stringData["key"]', message }])
  })
})
