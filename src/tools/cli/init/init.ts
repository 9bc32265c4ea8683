/** `sluice init` writes a folder of manifests to begin with. It never overwrites a file. */
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../../ground/base/make-folder.ts'
import { ollama, vendors } from '../ai/vendors.ts'
import { clientKeyOf } from '../local/gateway.ts'
import { exitCode, type Output, UsageError } from '../shared/output.ts'
import { type Answers, answersOf, ask, type GivenAnswers } from './answers.ts'
import { filesOf } from './files.ts'

export interface InitOptions extends GivenAnswers {
  /** Asks nothing. */
  readonly yes?: boolean
}

export async function init(folder: string, options: InitOptions, output: Output): Promise<number> {
  checkFolder(folder)
  answersOf(options)
  const isAsked = options.yes !== true && process.stdin.isTTY
  const answers = answersOf(isAsked ? await ask(options) : options)
  const key = clientKeyOf({ clientKey: answers.key })
  const files = filesOf(answers, key?.hash)
  makeFolder(folder)
  for (const [name, text] of files) {
    const path = join(folder, name)
    // Fails if another process has written the file since `checkFolder`.
    writeFileSync(path, text, { flag: 'wx' })
    output.report(`wrote ${path}`)
  }
  for (const line of nextSteps(folder, answers, key?.shown)) output.report(line)
  return exitCode.success
}

/** @throws UsageError if the folder has files, so that nothing is overwritten or mixed with them */
function checkFolder(folder: string): void {
  if (!existsSync(folder)) return
  if (!statSync(folder).isDirectory()) throw new UsageError(`${folder} is a file`)
  const [first] = readdirSync(folder)
  if (first === undefined) return
  throw new UsageError(
    `${folder} has files, such as ${first}, and nothing is overwritten; name another folder: sluice init FOLDER`,
  )
}

const examples = {
  http: (url: string, header: string) => `curl -i ${url}/${header}`,
  ai: (url: string, header: string) => `curl ${url}/v1/models${header}`,
  mcp: (url: string, header: string) =>
    `claude mcp add --transport http tools ${url}/mcp${header.replace('-H', '--header')}`,
}

function nextSteps(folder: string, { serve, upstream, port }: Answers, key?: string): string[] {
  const vendor =
    serve === 'ai' ? [...vendors, ollama].find(({ name }) => name === upstream) : undefined
  const header = key === undefined ? '' : ` -H "Authorization: Bearer ${key}"`
  return [
    '',
    'Next:',
    ...(vendor?.variables.slice(0, 1) ?? []).map((variable) => `  export ${variable}=…`),
    `  sluice validate -f ${folder}`,
    `  sluice run -f ${folder}`,
    `  ${examples[serve](`http://127.0.0.1:${port}`, header)}`,
  ]
}
