/** The commands of examples/what-if do what its README says, and its workflow comments and fails. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { useFolder, useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'

const root = join(import.meta.dirname, '..', '..')
const example = join(root, 'examples', 'what-if')
const folder = useFolder('sluice-what-if-example-')
const records = join(folder, 'records')
const [port, shop] = [await freePort(), await freePort()]

/** Copies a folder of manifests, with free ports in place of its own, and returns its files. */
function copyManifests(from: string, to: string): Record<string, string> {
  mkdirSync(to, { recursive: true })
  const texts = readdirSync(join(example, from)).map((file) => {
    const text = readFileSync(join(example, from, file), 'utf8')
    return [file, text.replaceAll('port: 8080', `port: ${port}`).replaceAll('9101', `${shop}`)]
  })
  for (const [file = '', text = ''] of texts) writeFileSync(join(to, file), text)
  return Object.fromEntries(texts)
}

interface Example {
  sendTraffic(ports: { gateway: number; shop: number }): Promise<Record<string, number>>
}

const running = useGateway(() => ({
  manifests: copyManifests('manifests', join(folder, 'base', 'manifests')),
  args: ['--record', 'all', '--record-dir', records],
}))

beforeAll(async () => {
  const { sendTraffic } = (await import(join(example, 'traffic.mjs'))) as Example
  expect(await sendTraffic({ gateway: port, shop })).toEqual({ 200: 25, 403: 5 })
  await running.stop()
  const head = join(folder, 'head', 'manifests')
  cpSync(join(folder, 'base', 'manifests'), head, { recursive: true })
  copyManifests('change', head)
  copyManifests('change', join(folder, 'change'))
  symlinkSync(root, join(folder, 'sluice'))
})

/** Without what differs from run to run. */
const withoutExamples = (text: string) =>
  text
    .split('\n')
    .filter((line) => !/^ +\d{4}-\d\d-\d\dT/.test(line))
    .join('\n')

describe('the example what-if', () => {
  it('prints the output that its README shows', async () => {
    const change = ['-f', join(folder, 'change'), '--overlay', '--requests', records]
    const { code, stdout } = await sluice('what-if', '--log-file', running.logFile, ...change)
    expect(code).toBe(1)
    const readme = withoutExamples(readFileSync(join(example, 'README.md'), 'utf8'))
    expect(readme).toContain(withoutExamples(stdout.trimEnd()))
    expect(stdout).toMatch(/POST shop\.example\.com\/orders/)
  })
})

interface Step {
  readonly name?: string
  readonly id?: string
  readonly uses?: string
  readonly run?: string
  readonly with?: { readonly script?: string }
}

interface Comment {
  readonly id: number
  readonly body: string
}

describe('the workflow of the example', () => {
  const text = readFileSync(join(example, '.github', 'workflows', 'what-if.yaml'), 'utf8')
  const workflow = parse(text) as { jobs: { 'what-if': { steps: Step[] } } }
  const { steps } = workflow.jobs['what-if']
  const step = (name: string) => steps.find((one) => one.name === name)

  it('uses only three actions, in fixed versions', () => {
    const used = steps.flatMap(({ uses }) => uses ?? [])
    expect(used.length).toBeGreaterThan(3)
    for (const action of used) {
      expect(action).toMatch(/^actions\/(checkout|setup-node|github-script)@v\d+\.\d+\.\d+$/)
    }
  })

  it('fails for requests that are no longer denied, and posts one comment that it updates', async () => {
    const outputs = join(folder, 'outputs')
    const environment = {
      ...process.env,
      GITHUB_OUTPUT: outputs,
      GITHUB_STEP_SUMMARY: join(folder, 'summary.md'),
      RECORDS: records,
    }
    const args = ['-e', '-o', 'pipefail', '-c', step('Compare')?.run ?? '']
    await promisify(execFile)('bash', args, { cwd: folder, env: environment })
    expect(readFileSync(outputs, 'utf8')).toBe('code=1\n')
    const comments: Comment[] = []
    const issues = {
      listComments: () => undefined,
      createComment: ({ body }: Comment) => comments.push({ id: 7, body }),
      updateComment: ({ body, comment_id }: Comment & { comment_id: number }) => {
        comments.splice(0, 1, { id: comment_id, body })
      },
    }
    const github = { rest: { issues }, paginate: () => comments }
    const context = { repo: { owner: 'acme', repo: 'gateways' }, issue: { number: 1 } }
    const script = step('Comment')?.with?.script ?? ''
    const before = process.cwd()
    const AsyncFunction = (async () => undefined).constructor as FunctionConstructor
    const run = new AsyncFunction('github', 'context', 'require', script)
    process.chdir(folder)
    try {
      for (let n = 0; n < 2; n++) await run(github, context, createRequire(import.meta.url))
    } finally {
      process.chdir(before)
    }
    expect(comments).toEqual([{ id: 7, body: expect.stringContaining('## sluice what-if') }])
    expect(comments[0]?.body).toContain('deny 403 → allow, 2 requests')
  })
})
