/** Runs commands of guides for a cluster, which are `bash` blocks, against a test's API server. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { readPage, repository } from './markdown.ts'
import { partPath } from './parts.ts'

/**
 * Runs the block of a page that begins like this, from the top of the repository.
 * @throws with what the commands wrote if one fails, or if the page has no such block
 */
export async function runClusterCommands(
  page: string,
  kubeconfig: string,
  start: RegExp,
): Promise<void> {
  const { blocks } = readPage(page)
  const block = blocks.find(({ language, text }) => language === 'bash' && start.test(text))
  if (block === undefined) throw new Error(`${page} has no bash block that matches ${start}`)
  const programs = [partPath('helm'), partPath('kubectl')].map((path) => dirname(path))
  const folder = mkdtempSync(join(tmpdir(), 'sluice-guide-helm-'))
  const env = {
    ...process.env,
    PATH: [...programs, process.env.PATH].join(delimiter),
    KUBECONFIG: kubeconfig,
    HELM_CACHE_HOME: folder,
    HELM_CONFIG_HOME: folder,
  }
  try {
    await promisify(execFile)('bash', ['-ec', block.text], { cwd: repository, env })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
