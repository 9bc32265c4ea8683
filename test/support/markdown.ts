/** Reads the Markdown pages of the repository: their code blocks, headings and links. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const repository = join(import.meta.dirname, '..', '..')

export interface CodeBlock {
  readonly language: string
  /** The words after the language, such as `server`. */
  readonly flags: readonly string[]
  readonly text: string
  readonly line: number
}

export interface Page {
  /** Path from the root of the repository. */
  readonly path: string
  readonly blocks: readonly CodeBlock[]
  /** Lines outside of code blocks, with their numbers. */
  readonly prose: readonly { readonly line: number; readonly text: string }[]
}

export function readPage(path: string): Page {
  const blocks: CodeBlock[] = []
  const prose: { line: number; text: string }[] = []
  let open: { info: string; lines: string[]; line: number } | undefined
  for (const [index, text] of readFileSync(join(repository, path), 'utf8').split('\n').entries()) {
    const fence = /^\s*```(.*)$/.exec(text)
    if (fence === null) {
      if (open === undefined) prose.push({ line: index + 1, text })
      else open.lines.push(text)
    } else if (open === undefined) {
      open = { info: fence[1] ?? '', lines: [], line: index + 1 }
    } else {
      const [language = '', ...flags] = open.info.split(/\s+/)
      blocks.push({ language, flags, text: open.lines.join('\n'), line: open.line })
      open = undefined
    }
  }
  if (open !== undefined) throw new Error(`${path}:${open.line}: this code block does not end`)
  return { path, blocks, prose }
}

/** The Markdown files below a folder, and those at the root of the repository. */
export function pagesBelow(...folders: readonly string[]): string[] {
  return folders.flatMap((folder) =>
    readdirSync(join(repository, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.md') && !file.includes('node_modules'))
      .map((file) => join(folder, file)),
  )
}

const withoutCode = (text: string) => text.replace(/`[^`]*`/g, (code) => ' '.repeat(code.length))

/** The targets of links and images, with their lines. */
export function linksOf({ prose }: Page): { line: number; target: string }[] {
  return prose.flatMap(({ line, text }) =>
    [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)].map((match) => ({
      line,
      target: match[1] ?? '',
    })),
  )
}

/** The anchors that GitHub and the site give the headings of a page. */
export function anchorsOf({ prose }: Page): Set<string> {
  const anchors = new Set<string>()
  for (const { text } of prose) {
    const heading = /^#{1,6} (.*)$/.exec(text)?.[1]
    if (heading !== undefined) anchors.add(slugOf(heading))
  }
  return anchors
}

/** The anchor of a heading by GitHub's rule, which the site uses as well. */
export function slugOf(heading: string): string {
  return heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
    .trim()
    .replaceAll(' ', '-')
}
