import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { clientFormats } from '../src/engines/messages/formats/index.ts'
import { gatewayConsoleSettings } from '../src/ground/settings/console.ts'
import { controllerSettings } from '../src/ground/settings/controller.ts'
import { settings } from '../src/ground/settings/index.ts'
import { protectionSettings } from '../src/ground/settings/protection.ts'
import { remoteSettings } from '../src/ground/settings/remote.ts'
import { stdioSettings } from '../src/ground/settings/stdio.ts'

const root = join(import.meta.dirname, '..')
const boundaries = JSON.parse(readFileSync(join(root, 'config', 'boundaries.json'), 'utf8')) as {
  areas: Record<string, { files: string[]; imports: string[] }>
  packages: Record<string, string[]>
}
const sources = globSync('{src,events,proto/gen,console,packages/*/src}/**/*.{ts,tsx}', {
  cwd: root,
}).sort()
const production = sources.filter((file) => !/\.test\.tsx?$/.test(file))

interface Import {
  readonly from: string
  readonly specifier: string
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(root, file), 'utf8')
  const pattern =
    /(?:^|\n)\s*(?:import|export)\b[^'";]*?from\s+'([^']+)'|import\(\s*'([^']+)'\s*\)|(?:^|\n)import\s+'([^']+)'/g
  return [...text.matchAll(pattern)].map((match) => ({
    from: file,
    specifier: match[1] ?? match[2] ?? match[3] ?? '',
  }))
}

function target({ from, specifier }: Import): string {
  return relative(root, join(root, dirname(from), specifier))
}

const places = Object.entries(boundaries.areas)
  .flatMap(([area, { files }]) => files.map((path) => ({ area, path })))
  .map(({ area, path }) => ({
    area,
    path,
    pattern: new RegExp(`^${path.replaceAll('*', '[^/]+')}(?:[./]|$)`),
  }))
  .sort((one, other) => other.path.length - one.path.length)

/** The area with the longest path that fits. */
function areaOf(file: string): string | undefined {
  return places.find(({ pattern }) => pattern.test(file))?.area
}

/** AssemblyScript imports omit the file extension. */
const kernels = globSync('assembly/**/*.ts', { cwd: root }).sort()

/** Imports, including those of types, that form cycles or connect two cycles. */
function circles(imports: readonly (readonly [from: string, to: string])[]): string[] {
  let rest = imports
  for (let before = -1; before !== rest.length; ) {
    before = rest.length
    const needy = new Set(rest.map(([from]) => from))
    const needed = new Set(rest.map(([, to]) => to))
    rest = rest.filter(([from, to]) => needy.has(to) && needed.has(from))
  }
  return rest.map(([from, to]) => `${from} -> ${to}`)
}

const own = production.flatMap(importsOf).filter(({ specifier }) => specifier.startsWith('.'))

describe('the structure of the source', () => {
  it('imports node:http from src/ground/base/node-http.ts only, which saves 14 MB of memory', () => {
    const isImported = (file: string) =>
      /^import (?!type\b)[^;']*'node:http'/m.test(readFileSync(join(root, file), 'utf8'))
    expect(production.filter(isImported)).toEqual([])
  })

  it('imports fast-check from test/support/fast-check.ts only, which makes random values repeatable', () => {
    const isImported = (file: string) =>
      /^import .*'fast-check'/m.test(readFileSync(join(root, file), 'utf8'))
    const files = globSync('{src,events,test,console}/**/*.ts', { cwd: root })
    expect(files.filter(isImported)).toEqual(['test/support/fast-check.ts'])
  })

  it('assigns an area to every source file', () => {
    expect(production.filter((file) => areaOf(file) === undefined)).toEqual([])
  })

  it('lets a file import only what config/boundaries.json lists for its area', () => {
    const forbidden = own.filter((entry) => {
      const from = areaOf(entry.from) ?? ''
      const to = areaOf(target(entry)) ?? target(entry)
      const allowed = boundaries.areas[from]?.imports ?? []
      return from !== to && !allowed.includes('*') && !allowed.includes(to)
    })
    expect(forbidden.map((entry) => `${entry.from} -> ${target(entry)}`)).toEqual([])
  })

  it('lets the proxy know the kinds of backends only through their registry', () => {
    const named = own.filter(
      (entry) =>
        entry.from.startsWith('src/gateway/proxy/') &&
        target(entry).startsWith('src/gateway/backends/') &&
        target(entry) !== 'src/gateway/backends/registry.ts',
    )
    expect(named.map((entry) => `${entry.from} -> ${target(entry)}`)).toEqual([])
  })

  it('lists no place without files and no import that is unused', () => {
    const stale = places.filter(({ pattern }) => !production.some((file) => pattern.test(file)))
    const used = new Set(own.map((entry) => `${areaOf(entry.from)} -> ${areaOf(target(entry))}`))
    const unused = Object.entries(boundaries.areas).flatMap(([from, { imports }]) =>
      imports
        .map((to) => `${from} -> ${to}`)
        .filter((edge) => !edge.endsWith('*') && !used.has(edge)),
    )
    expect([stale.map(({ path }) => path), unused]).toEqual([[], []])
  })

  it('has no two folders that import each other, except a folder and those within it', () => {
    const edges = new Set(own.map((entry) => `${dirname(entry.from)} -> ${dirname(target(entry))}`))
    const strict = /^src\/(engines\/http|gateway\/proxy)\b/
    // The registry of policies imports those of the backends, which import the contract in the registry's folder.
    const backends = /^src\/gateway\/backends\//
    const twoWay = [...edges].filter((edge) => {
      const [from = '', to = ''] = edge.split(' -> ')
      const isNested = to.startsWith(`${from}/`)
      return (
        from < to &&
        !backends.test(from) &&
        (strict.test(from) || !isNested) &&
        edges.has(`${to} -> ${from}`)
      )
    })
    expect(twoWay).toEqual([])
  })

  it('lets a folder of the engine import only those above it in docs/engine.md', () => {
    const page = readFileSync(join(root, 'docs/engine.md'), 'utf8')
    const order = [...page.matchAll(/^\| `([\w-]+)\/` \|/gm)].map(([, name]) => name ?? '')
    const folder = (file: string) => /^src\/engines\/http\/([\w-]+)\//.exec(file)?.[1]
    const wrong = own.filter((entry) => {
      const from = folder(entry.from)
      const to = folder(target(entry))
      return from !== undefined && to !== undefined && order.indexOf(from) < order.indexOf(to)
    })
    expect(order.length).toBeGreaterThan(10)
    expect(wrong.map((entry) => `${entry.from} -> ${target(entry)}`)).toEqual([])
  })

  it('lets a room of the MCP proxy import only those below it in its README', () => {
    const proxy = 'src/gateway/backends/mcp/proxy'
    const page = readFileSync(join(root, proxy, 'README.md'), 'utf8')
    const order = [...page.matchAll(/^\| `([\w-]+)\/` \|/gm)].map(([, name]) => name ?? '')
    const rank = (file: string) => {
      if (!file.startsWith(`${proxy}/`)) return order.length
      return order.indexOf(file.slice(proxy.length + 1).split('/')[0] ?? '')
    }
    const wrong = own.filter((entry) => rank(entry.from) > rank(target(entry)))
    const inProxy = wrong.filter(({ from }) => from.startsWith(`${proxy}/`))
    expect(order.length).toBe(8)
    expect(inProxy.map((entry) => `${entry.from} -> ${target(entry)}`)).toEqual([])
  })

  it('restricts each package to the folders that may use it', () => {
    const used = production
      .flatMap(importsOf)
      .filter(({ specifier }) => !specifier.startsWith('.') && !specifier.startsWith('node:'))
    const misplaced = used.filter(({ from, specifier }) => {
      const entry = Object.entries(boundaries.packages).find(
        ([name]) => specifier === name || specifier.startsWith(`${name}/`),
      )
      return entry !== undefined && !entry[1].some((area) => from.startsWith(`${area}`))
    })
    expect(misplaced.map(({ from, specifier }) => `${from} -> ${specifier}`)).toEqual([])
  })

  it('allows no cycle between areas', () => {
    const edges = new Map<string, Set<string>>()
    for (const entry of own) {
      const from = areaOf(entry.from) ?? entry.from
      const to = areaOf(target(entry)) ?? target(entry)
      if (from === to) continue
      edges.set(from, (edges.get(from) ?? new Set()).add(to))
    }
    const reaches = (from: string, goal: string, seen = new Set<string>()): boolean =>
      [...(edges.get(from) ?? [])].some(
        (next) => next === goal || (!seen.has(next) && reaches(next, goal, seen.add(next))),
      )
    expect([...edges.keys()].filter((area) => reaches(area, area))).toEqual([])
  })

  it('allows no cycle between files', () => {
    const ofKernels = kernels
      .flatMap(importsOf)
      .map((entry) => [entry.from, `${target(entry)}.ts`] as const)
    expect(
      circles([...own.map((entry) => [entry.from, target(entry)] as const), ...ofKernels]),
    ).toEqual([])
  })

  it('keeps the pure folders free of clocks, randomness and I/O', () => {
    const pure = production.filter((file) =>
      /^src\/(control\/(actors|desired)|ground\/model|gateway\/policies)\/|^src\/gateway\/backends\/(define|definitions|.*\/definition)\b/.test(
        file,
      ),
    )
    const impure =
      /Date\.now|new Date\(\)|Math\.random|performance\.|setTimeout|setInterval|setImmediate|randomUUID|process\.|node:(fs|net|http|os|child_process|worker_threads)/
    const decided = pure.filter(
      (file) => !file.endsWith('/apply.ts') && impure.test(readFileSync(join(root, file), 'utf8')),
    )
    expect(decided).toEqual([])
  })
})

/** Files that may ask for the name of a message format. The list may only become shorter. */
const namesFormats = [
  // Providers say on which path they have a format, and how they serve the others.
  /^src\/gateway\/backends\/ai\/providers\//,
  // The texts of the schema of `routes`; the compiler checks that it has all of them.
  /^src\/gateway\/backends\/ai\/policy\/schema\.ts$/,
  // The numbers of formats in the core, which is compiled from its own table.
  /^src\/engines\/core\/texts\.ts$/,
]

describe('message formats', () => {
  it('are described in their folders, so that no other code asks for their names', () => {
    const name = `(?:${Object.keys(clientFormats).join('|')})`
    const asks = new RegExp(
      `(?:case|[=!]==) '${name}'|^\\s+'?${name}'?: |Record<(?:ChatFormatName|ReadRouteType|ProviderFormatName)\\b`,
      'm',
    )
    const asking = production
      .filter((file) => file.startsWith('src/') && !/^src\/engines\/messages\/formats\//.test(file))
      .filter((file) => asks.test(readFileSync(join(root, file), 'utf8')))
    const known = (file: string) => namesFormats.some((pattern) => pattern.test(file))
    expect(asking.filter((file) => !known(file))).toEqual([])
    expect(namesFormats.filter((pattern) => !asking.some((file) => pattern.test(file)))).toEqual([])
  })
})

/** Everything that may import a source file. */
const readers = [
  ...sources,
  ...globSync('{test,bench,scripts,examples}/**/*.{ts,tsx,mjs}', { cwd: root }),
].map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }))

/** The entry points of the package by its manifest, and the files that they re-export. */
const published = new Set(
  Object.values(
    (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: object }).exports,
  ).flatMap(({ types = '' }: { types?: string }) =>
    types === '' ? [] : [types.replace('./dist/types/', '').replace('.d.ts', '.ts')],
  ),
)

/** What files take from a file: its names, or the text of each file that takes it as a whole. */
interface Taken {
  readonly names: Set<string>
  readonly wholes: string[]
}

const importForm =
  /\b(import|export)\s+(?:type\s+)?(\{[^}]*\}|\*(?:\s+as\s+\w+)?)\s+from\s+'(\.[^']+)'|\bimport\(\s*'(\.[^']+)'/g

function takenFrom(): ReadonlyMap<string, Taken> {
  const taken = new Map<string, Taken>()
  for (const { file, text } of readers) {
    for (const [, keyword, what = '*', path, dynamic] of text.matchAll(importForm)) {
      const to = target({ from: file, specifier: path ?? dynamic ?? '' })
      const found = taken.get(to) ?? { names: new Set(), wholes: [] }
      taken.set(to, found)
      for (const [, name = ''] of what.matchAll(/(?:type\s+)?(\w+)(?:\s+as\s+\w+)?\s*[,}]/g)) {
        found.names.add(name)
      }
      if (!what.startsWith('*')) continue
      if (keyword === 'export' && published.has(file)) published.add(to)
      else found.wholes.push(text)
    }
  }
  return taken
}

/** Names that a file exports in a declaration or in an export list. */
function exportsOf(text: string): string[] {
  const declared = text.matchAll(
    /^export (?:declare |abstract |async )*(?:const|let|function\*?|class|interface|type|enum) (\w+)/gm,
  )
  const listed = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, list = '']) =>
    list.split(',').map((entry) => entry.trim().split(/\s+/).at(-1) ?? ''),
  )
  return [...[...declared].map(([, name = '']) => name), ...listed.filter((name) => name !== '')]
}

describe('exported names', () => {
  it('are imported by another file or published by the package', () => {
    const taken = takenFrom()
    const unused = production
      .filter((file) => /^(src|console)\//.test(file) && !file.includes('/generated/'))
      .filter((file) => !published.has(file))
      .flatMap((file) => {
        // Bundles for browsers have NAME-browser.ts in place of NAME.ts.
        const found = [file, file.replace('-browser.ts', '.ts')].flatMap(
          (path) => taken.get(path) ?? [],
        )
        const isTaken = (name: string) =>
          found.some(
            ({ names, wholes }) =>
              names.has(name) || wholes.some((text) => new RegExp(`\\b${name}\\b`).test(text)),
          )
        return exportsOf(readFileSync(join(root, file), 'utf8'))
          .filter((name) => !isTaken(name))
          .map((name) => `${file}: ${name}`)
      })
    expect(unused).toEqual([])
  })
})

describe('settings', () => {
  it('are each read somewhere', () => {
    const text = production
      .filter((file) => file.startsWith('src/'))
      .map((file) => readFileSync(join(root, file), 'utf8'))
      .join('\n')
    const all = {
      ...settings,
      ...protectionSettings,
      ...controllerSettings,
      ...remoteSettings,
      ...gatewayConsoleSettings,
      ...stdioSettings,
    }
    // A setting is described as `name: row(…)`; every other mention reads it.
    const isRead = (name: string) => new RegExp(`\\b${name}\\b(?!: row)`).test(text)
    expect(Object.keys(all).filter((name) => !isRead(name))).toEqual([])
  })
})

describe('source and test files', () => {
  it('have at most 400 lines', () => {
    const tests = globSync('{{src,events}/**/*.test,test/**/*}.ts', { cwd: root })
    const styles = globSync('console/**/*.css', { cwd: root })
    const long = [...production, ...tests, ...styles]
      .filter((file) => !file.startsWith('proto/gen/') && !file.includes('/generated/'))
      .filter((file) => {
        const text = readFileSync(join(root, file), 'utf8')
        return !text.startsWith('// Generated ') && text.split('\n').length > 401
      })
    expect(long).toEqual([])
  })
})
