/** The npm package @sluice/core from its tarball, installed into a folder of its own. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { root } from '../hosts/files-server.ts'

/** Runs a program, which must end with 0. Returns what it prints. */
export function command(program: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', cwd })
  expect(status, stdout + stderr).toBe(0)
  return stdout
}

/** Returns the folder of a program that has the package, the client of OpenAI, and the types of Node. */
export function installPackage(): string {
  const app = mkdtempSync(join(tmpdir(), 'sluice-javascript-'))
  command(process.execPath, [join(root, 'scripts', 'packages', 'javascript.mjs'), '.'], app)
  const [tarball = ''] = readdirSync(app)
  writeFileSync(join(app, 'package.json'), '{ "private": true, "type": "module" }')
  command('npm', ['install', '--silent', '--offline', `./${tarball}`], app)
  for (const name of ['@types', 'openai']) {
    symlinkSync(join(root, 'node_modules', name), join(app, 'node_modules', name))
  }
  return app
}
