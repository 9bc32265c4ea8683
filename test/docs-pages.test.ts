/** Links, manifests and commands of every documentation page. */
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { validateObject } from '../src/control/api/validate.ts'
import {
  anchorsOf,
  linksOf,
  type Page,
  pagesBelow,
  readPage,
  repository,
} from './support/markdown.ts'

const paths = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  ...pagesBelow('docs', 'examples'),
]
const pages = new Map(paths.map((path) => [path, readPage(path)]))

function problemOfLink(page: Page, target: string): string | undefined {
  if (/^[a-z]+:/.test(target)) return undefined
  const [file = '', anchor] = target.split('#')
  const path = file === '' ? page.path : normalize(join(dirname(page.path), decodeURI(file)))
  if (!existsSync(join(repository, path))) return `${path} does not exist`
  if (anchor === undefined || statSync(join(repository, path)).isDirectory()) return undefined
  const linked = pages.get(path)
  return linked === undefined || anchorsOf(linked).has(anchor)
    ? undefined
    : `${path} has no heading #${anchor}`
}

describe('links', () => {
  it.each(
    pages
      .values()
      .map((page) => [page.path, page] as const)
      .toArray(),
  )('of %s lead to files and headings that exist', (_, page) => {
    const broken = linksOf(page).flatMap(({ line, target }) => {
      const problem = problemOfLink(page, target)
      return problem === undefined ? [] : [`${page.path}:${line}: ${problem}`]
    })
    expect(broken).toEqual([])
  })
})

describe('docs/index.md', () => {
  it('leads to every page, directly or by the index of its folder', () => {
    const index = readPage('docs/index.md')
    const linked = new Set(linksOf(index).map(({ target }) => `docs/${target}`))
    const isListed = (path: string) => {
      const folder = dirname(path)
      return [path, `${folder}.md`, `${folder}/index.md`].some((page) => linked.has(page))
    }
    const docs = paths.filter((path) => path.startsWith('docs/') && path !== index.path)
    expect(docs.length).toBeGreaterThan(50)
    expect(docs.filter((path) => !isListed(path))).toEqual([])
  })
})

/** Problems of the YAML in a page: syntax, and the schemas of manifests. */
function problemsOfYaml({ path, blocks }: Page): string[] {
  return blocks
    .filter(({ language }) => language === 'yaml')
    .flatMap(({ text, line }) =>
      parseAllDocuments(text).flatMap((document) => {
        const at = `${path}:${line}:`
        if (document.errors.length > 0)
          return document.errors.map((error) => `${at} ${error.message}`)
        return problemsOfObject(document.toJS({ merge: true })).map((problem) => `${at} ${problem}`)
      }),
    )
}

/** Problems of a whole manifest. Other YAML, such as values of a chart or a part of an object, has none. */
function problemsOfObject(value: unknown): string[] {
  const { apiVersion, kind, metadata } = (value ?? {}) as Record<string, unknown>
  if (typeof apiVersion !== 'string' || kind === undefined || metadata === undefined) return []
  if (!/^(gateway\.networking\.k8s\.io|sluice\.dev|inference\.networking)/.test(apiVersion))
    return []
  const outcome = validateObject(value as object)
  return outcome.ok ? [] : outcome.problems.map(({ path, message }) => `${path}: ${message}`)
}

describe('code blocks', () => {
  it('of YAML parse, and manifests conform to the schemas', () => {
    expect([...pages.values()].flatMap(problemsOfYaml)).toEqual([])
  })

  it('check manifests against the schemas at all', () => {
    const wrong = {
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'GatewayPolicy',
      metadata: { name: 'a' },
    }
    expect(problemsOfObject({ ...wrong, spec: { traffik: {} } })).not.toEqual([])
  })

  it('of shell commands have the syntax of bash', () => {
    const blocks = [...pages.values()].flatMap(({ path, blocks }) =>
      blocks.filter(({ language }) => language === 'sh').map((block) => ({ path, ...block })),
    )
    expect(blocks.length).toBeGreaterThan(50)
    // A function per block: one process parses all of them, and an error names the page.
    const script = blocks.map(({ text }, index) => `block${index}() {\n${text}\n:\n}\n`)
    const { status, stderr } = spawnSync('bash', ['-n'], {
      input: script.join(''),
      encoding: 'utf8',
    })
    const line = Number(/line (\d+)/.exec(stderr)?.[1] ?? 0)
    expect({ status, stderr, page: pageOfLine(script, blocks, line) }).toMatchObject({ status: 0 })
  })
})

/** The page whose block has a line of the script that joins all blocks. */
function pageOfLine(
  script: readonly string[],
  blocks: readonly { path: string; line: number }[],
  line: number,
): string | undefined {
  let before = 0
  const index = script.findIndex((text) => {
    before += text.split('\n').length - 1
    return line <= before
  })
  const block = blocks[index]
  return block === undefined ? undefined : `${block.path}:${block.line}`
}
