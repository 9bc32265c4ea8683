import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { errorCatalogue } from '../src/ground/errors/index.ts'

const root = join(import.meta.dirname, '..')
const read = (file: string) => readFileSync(join(root, file), 'utf8')

describe('docs/errors.md', () => {
  const rows = new Map(
    read('docs/errors.md')
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .map((line) => {
        const cells = line.split('|').map((cell) => cell.trim())
        return [cells[1]?.replaceAll('`', '') ?? '', cells.slice(2, 8)] as const
      }),
  )

  it('has exactly one row for every error code', () => {
    expect([...rows.keys()].sort()).toEqual(Object.keys(errorCatalogue).sort())
  })

  it.each(Object.entries(errorCatalogue))('describes %s as in the error catalogue', (code, row) => {
    const { status, source, retry, reason, proxyError, text } = row
    expect(rows.get(code)).toEqual([String(status), source, retry, reason, proxyError, text])
  })
})

describe('pages for contributors', () => {
  it('mention every wing of src and its folders in docs/architecture.md', () => {
    const page = read('docs/architecture.md')
    const foldersIn = (path: string) =>
      readdirSync(join(root, path), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => `${path}/${name}`)
    const wings = foldersIn('src')
    const folders = [...wings, ...wings.flatMap(foldersIn)]
    expect(folders.filter((folder) => !page.includes(folder))).toEqual([])
  })

  it.each(['docs/architecture.md', 'CONTRIBUTING.md'])(
    'mention only files and folders that exist (%s)',
    (page) => {
      const named = [...read(page).matchAll(/`((?:src|test)\/[\w./-]+)`/g)]
      expect(
        named.map(([, path = '']) => path).filter((path) => !existsSync(join(root, path))),
      ).toEqual([])
    },
  )
})

describe('the documentation pages', () => {
  it('link only to files that exist', () => {
    const pages = [
      'README.md',
      'CONTRIBUTING.md',
      'docs/architecture.md',
      'docs/engine.md',
      'docs/replay.md',
      'docs/operations.md',
    ]
    const links = pages.flatMap((page) =>
      [...read(page).matchAll(/\]\(([^)#:]+)\)/g)].map((match) => join(page, '..', match[1] ?? '')),
    )
    expect(links.length).toBeGreaterThan(10)
    for (const link of links) expect(() => read(link) && 0).not.toThrow(/ENOENT/)
  })

  it('mention no host names and paths of a developer machine', () => {
    for (const page of ['README.md', 'CONTRIBUTING.md', 'docs/operations.md', 'docs/replay.md']) {
      expect(read(page)).not.toMatch(/\/(work|home|root)\//)
    }
  })
})

describe('package.json', () => {
  const manifest = JSON.parse(read('package.json')) as { exports: Record<string, unknown> }

  it('exports only the documented entry points', () => {
    expect(Object.keys(manifest.exports).sort()).toEqual([
      './core',
      './core-rate-shared.wasm',
      './core-texts.wasm',
      './core.abi.json',
      './core.wasm',
      './events',
      './messages',
      './package.json',
      './policy',
      './replay',
      './sluice-filter.wasm',
    ])
  })
})

describe('package-lock.json', () => {
  it('lists the optional packages of every platform, so that npm ci works everywhere', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { optionalDependencies?: Record<string, string> }>
    }
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter(
        (name) =>
          !(`node_modules/${name}` in packages) && !(`${path}/node_modules/${name}` in packages),
      ),
    )
    expect(missing).toEqual([])
  })
})
