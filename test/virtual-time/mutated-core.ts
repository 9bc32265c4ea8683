/** Compiles core-texts.wasm with a defect in its sources, which are AssemblyScript. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'

const root = join(import.meta.dirname, '..', '..')

/**
 * Returns the name by which the core's host finds the module: its path from dist/. The module is removed when the
 * process ends. @throws Error if it cannot be compiled
 */
export function compileTexts(file: string, change: (source: string) => string): string {
  const folder = mkdtempSync(join(tmpdir(), 'core-mutation-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  cpSync(join(root, 'assembly'), join(folder, 'assembly'), { recursive: true })
  const path = join(folder, file)
  writeFileSync(path, change(readFileSync(path, 'utf8')))
  const made = join(folder, 'core-texts.wasm')
  const { options } = JSON.parse(
    readFileSync(join(root, 'config', 'asconfig.options.json'), 'utf8'),
  )
  const config = {
    // Compiles in seconds.
    options: { ...options, optimizeLevel: 0, converge: false },
    entries: ['assembly/texts.ts'],
    targets: { release: { outFile: 'core-texts.wasm' } },
  }
  writeFileSync(join(folder, 'asconfig.json'), JSON.stringify(config))
  const compiler = join(root, 'node_modules', 'assemblyscript', 'bin', 'asc.js')
  const args = [compiler, '--config', 'asconfig.json', '--target', 'release']
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
  if (!existsSync(made)) throw new Error(`the core does not compile: ${stdout}${stderr}`)
  return relative(join(root, 'dist'), made)
}
