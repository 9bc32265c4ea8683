/** What a browser loads for the console, and that nothing in it needs Node or another server. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { root } from '../hosts/files-server.ts'

const folder = join(root, 'dist', 'console')
const sizeOf = (file: string) => gzipSync(readFileSync(join(folder, file)), { level: 9 }).length

/** A script and everything that it imports statically. */
function withImports(entry: string, found = new Set<string>()): Set<string> {
  if (found.has(entry)) return found
  found.add(entry)
  const text = readFileSync(join(folder, entry), 'utf8')
  for (const [, file = ''] of text.matchAll(/(?:from|import)\s*"\.\/([^"]+)"/g)) {
    withImports(file, found)
  }
  return found
}

describe('the built console', () => {
  it('loads at most 397 kB of gzip before a log is shown', () => {
    const scripts = new Set([...withImports('main.js'), ...withImports('fold-worker.js')])
    expect(scripts.size).toBeGreaterThan(2)
    const files = ['index.html', 'style.css', 'core.wasm', ...scripts]
    const bytes = files.reduce((sum, file) => sum + sizeOf(file), 0)
    expect(bytes).toBeLessThan(397_000)
    expect(bytes).toBeGreaterThan(100_000)
  })

  it('shows its frame after at most 60 kB', () => {
    const files = ['index.html', 'style.css', ...withImports('main.js')]
    expect(files.reduce((sum, file) => sum + sizeOf(file), 0)).toBeLessThan(60_000)
  })

  it('has no module of Node, no other origin and no inline script', () => {
    for (const file of globSync('*.js', { cwd: folder })) {
      expect(readFileSync(join(folder, file), 'utf8')).not.toMatch(/["']node:/)
    }
    const page = readFileSync(join(folder, 'index.html'), 'utf8')
    expect(page).not.toMatch(/(?:src|href)="(?:https?:)?\/\//)
    expect(page).not.toMatch(/unsafe-|<script(?![^>]*src=)|style="/)
  })
})
