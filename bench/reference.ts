/** The older build against which `bench/gate.ts` measures this one. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

export interface Reference {
  readonly name: string
  /** Its command line. */
  readonly program: string
}

const git = (...args: string[]): string =>
  execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })

function lastRelease(): string {
  try {
    return git('describe', '--tags', '--abbrev=0', '--match=v*').trim()
  } catch {
    throw new Error(
      'there is no tag v* yet: set SLUICE_BENCH_REFERENCE to a revision, or to the folder of a checkout that is built',
    )
  }
}

/**
 * The build that `SLUICE_BENCH_REFERENCE` names by the folder of its checkout or by its revision; that of the last
 * tag `v*` if it is not set. A revision is built once, in the user's cache.
 */
export function findReference(note: (text: string) => void): Reference {
  const name = process.env.SLUICE_BENCH_REFERENCE || lastRelease()
  const folder = existsSync(join(name, 'bin', 'sluice')) ? name : built(name, note)
  return { name, program: join(folder, 'bin', 'sluice') }
}

function built(revision: string, note: (text: string) => void): string {
  const commit = git('rev-parse', '--verify', '--end-of-options', `${revision}^{commit}`).trim()
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache')
  const folder = join(cache, 'sluice-bench', `build-${commit}`)
  if (existsSync(folder)) return folder
  note(`building ${revision}`)
  const fresh = `${folder}.${process.pid}`
  mkdirSync(fresh, { recursive: true })
  try {
    const archive = execFileSync('git', ['archive', commit], { cwd: root, maxBuffer: 2 ** 30 })
    execFileSync('tar', ['-x', '-C', fresh], { input: archive })
    const npm = (...args: string[]) =>
      execFileSync('npm', args, { cwd: fresh, stdio: ['ignore', 'ignore', 'inherit'] })
    npm('ci', '--no-audit', '--no-fund')
    npm('run', 'build')
    renameSync(fresh, folder)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
  return folder
}
