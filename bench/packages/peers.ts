/** Where the peers of the packages are installed: a cache outside the repository. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

const scripts = join(import.meta.dirname, '..', '..', 'scripts', 'packages')

/** The folder of test/assets/setup. */
export function cacheFolder(): string {
  const caches = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache')
  const folder = join(process.env.SLUICE_ASSETS ?? join(caches, 'sluice-assets'), 'bench')
  mkdirSync(folder, { recursive: true })
  return folder
}

/** Runs a command. Returns its standard output, or throws what it said. */
export function command(
  program: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = {},
): string {
  const options = { cwd, encoding: 'utf8', env: { ...process.env, ...env } } as const
  const { status, stdout, stderr, error } = spawnSync(program, args, options)
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stdout}${stderr}`)
  return stdout
}

/** Makes a package, as its script for users does. Returns the first name in the folder. */
export function pack(script: string, folder: string): string {
  command(process.execPath, [join(scripts, script), folder], scripts)
  return readdirSync(folder)[0] ?? ''
}

/** Installs a Python package with its dependencies, unless it is there. Returns its folder, or why it is absent. */
export function installPython(requirement: string): { folder: string } | { reason: string } {
  const made = join(cacheFolder(), `python-${requirement}`)
  if (existsSync(made)) return { folder: made }
  const part = `${made}.${process.pid}`
  try {
    const args = ['-m', 'pip', 'install', '-q', '--no-compile', '--target', part, requirement]
    command('python3', args, cacheFolder())
    renameSync(part, made)
    return { folder: made }
  } catch (error) {
    rmSync(part, { recursive: true, force: true })
    return { reason: String(error).trim().split('\n').at(-1) ?? '' }
  }
}
