// Declarations of the entry points that packages publish.
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

/** Declares `Symbol.dispose` for programs whose `lib` does not have it. */
const disposable = '/// <reference lib="esnext.disposable" />\n'

/**
 * Writes the declarations of a TypeScript project to a folder.
 * @throws if the project has type errors
 */
export function writeDeclarations(project, folder) {
  const tsc = join(root, 'node_modules', '.bin', 'tsc')
  const options = { cwd: root, encoding: 'utf8' }
  const run = spawnSync(tsc, ['-p', project, '--outDir', folder], options)
  if (run.status !== 0) throw new Error(`tsc: ${run.stdout}${run.stderr}`)
  for (const name of globSync('**/*.d.ts', { cwd: folder })) {
    const file = join(folder, name)
    const text = readFileSync(file, 'utf8')
    if (/\bSymbol\.(?:asyncD|d)ispose\b|\b(?:Async)?Disposable\b/.test(text)) {
      writeFileSync(file, disposable + text)
    }
  }
}
