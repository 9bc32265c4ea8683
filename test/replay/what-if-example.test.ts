/** The commands of examples/what-if do what its README says, and its workflow comments and fails. */
import { execFile } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { useFolder, useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { describeWithParts, partPath } from '../support/parts.ts'

const root = join(import.meta.dirname, '..', '..')
const example = join(root, 'examples', 'what-if')
const folder = useFolder('sluice-what-if-example-')
const records = join(folder, 'records')
const exported = join(folder, 'base', 'records.sluice')
const { privateKey, publicKey } = generateKeyPairSync('ed25519', {
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
})
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
  writeFileSync(join(folder, 'private.pem'), privateKey)
  writeFileSync(join(folder, 'public.pem'), publicKey)
  const key = join(folder, 'private.pem')
  const out = await sluice('records', 'export', exported, '--record-dir', records, '--key', key)
  expect(out).toMatchObject({ code: 0, stderr: '' })
  expect(out.stdout).toContain('30 requests from ')
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

describe('sluice what-if --records', () => {
  const base = [
    '--from',
    join(folder, 'base', 'manifests'),
    '-f',
    join(folder, 'head', 'manifests'),
  ]
  const compare = async (file: string, ...more: string[]) => {
    const { code, stdout, stderr } = await sluice('what-if', ...base, '--records', file, ...more)
    return { code, stdout, stderr: stderr.trim() }
  }
  const key = ['--records-key', join(folder, 'public.pem')]

  it('refuses a file that the key has not signed, that was changed, or that is too old', async () => {
    const secret = join(folder, 'secret')
    writeFileSync(secret, 's'.repeat(32))
    const other = join(folder, 'other.sluice')
    const signed = await sluice(
      'records',
      'export',
      other,
      '--record-dir',
      records,
      '--key',
      secret,
    )
    expect(signed.code).toBe(0)
    const changed = join(folder, 'changed.sluice')
    const bytes = readFileSync(exported)
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
    writeFileSync(changed, bytes)
    const isRefused = (text: string) => ({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(text),
    })
    const outcomes = await Promise.all([
      compare(other, ...key),
      compare(changed, ...key),
      compare(exported, ...key, '--records-max-age', '1ms'),
      compare(exported),
      compare(other, '--records-key', secret),
    ])
    expect(outcomes).toEqual([
      isRefused('is not signed by the key of --records-key'),
      isRefused('was changed after it was signed'),
      isRefused('is too old'),
      isRefused('--records needs --records-key'),
      {
        code: 1,
        stderr: '',
        stdout: expect.stringContaining('30 requests: 8 unchanged, 22 changed'),
      },
    ])
  })

  describeWithParts(['helm', 'kubectl'], 'with manifests of Helm and Kustomize', () => {
    const render = async (part: 'helm' | 'kubectl', ...args: string[]) =>
      (await promisify(execFile)(partPath(part), args)).stdout

    it.each(['helm', 'kubectl'] as const)('compares what %s renders', async (part) => {
      const folders = ['base', 'change'].map((name) => join(example, 'kustomize', name))
      const chart = ['template', 'shop', join(example, 'helm')]
      const texts =
        part === 'helm'
          ? [
              await render(part, ...chart),
              await render(part, ...chart, '-f', join(example, 'helm', 'change.yaml')),
            ]
          : await Promise.all(
              folders.map((path) =>
                render(part, 'kustomize', '--load-restrictor', 'LoadRestrictionsNone', path),
              ),
            )
      const files = texts.map((text, at) => {
        const file = join(folder, `${part}-${at}.yaml`)
        writeFileSync(file, text.replaceAll('port: 8080', `port: ${port}`))
        return file
      })
      const [from = '', to = ''] = files
      const args = ['--from', from, '-f', to, '--records', exported, ...key]
      expect((await sluice('what-if', ...args)).stdout).toContain(
        '30 requests: 8 unchanged, 22 changed, 0 undecided',
      )
    })
  })
})

describe('the GitLab pipeline of the example', () => {
  it('fails for requests that are no longer denied, and writes one note that it updates', async () => {
    const pipeline = parse(readFileSync(join(example, '.gitlab-ci.yml'), 'utf8'))
    const notes: { id: number; author: { id: number }; body: string }[] = [
      { id: 1, author: { id: 9 }, body: '<!-- sluice what-if -->\nof another user' },
    ]
    const server = createServer((request, response) => {
      let text = ''
      request.on('data', (part) => {
        text += part
      })
      request.on('end', () => {
        const path = (request.url ?? '').replace(/\?.*/, '')
        expect(request.headers['private-token']).toBe('token')
        const body = text === '' ? undefined : JSON.parse(text).body
        if (request.method === 'POST') notes.push({ id: 2, author: { id: 4 }, body })
        if (request.method === 'PUT') {
          const note = notes.find(({ id }) => path === `/projects/7/merge_requests/3/notes/${id}`)
          if (note !== undefined) note.body = `${body} again`
        }
        response.end(JSON.stringify(path === '/user' ? { id: 4 } : notes))
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const work = join(folder, 'gitlab')
    mkdirSync(work)
    for (const [name, path] of [
      ['sluice', root],
      ['base', join(folder, 'base')],
      ['manifests', join(folder, 'head', 'manifests')],
    ] as const) {
      symlinkSync(path, join(work, name))
    }
    const env = {
      ...process.env,
      CI_API_V4_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      CI_PROJECT_ID: '7',
      CI_MERGE_REQUEST_IID: '3',
      SLUICE_GITLAB_TOKEN: 'token',
      SLUICE_RECORDS_KEY: publicKey,
      RECORDS: exported,
    }
    const script = pipeline['what-if'].script.join('\n')
    for (let n = 0; n < 2; n++) {
      await expect(
        promisify(execFile)('bash', ['-e', '-c', script], { cwd: work, env }),
      ).rejects.toMatchObject({ code: 1, stderr: '' })
    }
    server.close()
    expect(notes.map(({ id }) => id)).toEqual([1, 2])
    expect(notes[1]?.body).toMatch(/^<!-- sluice what-if -->\n## sluice what-if\n[\s\S]* again$/)
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
  readonly user: { readonly login: string }
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
      RECORDS: exported,
      RECORDS_KEY: publicKey,
    }
    const args = ['-e', '-o', 'pipefail', '-c', step('Compare')?.run ?? '']
    await promisify(execFile)('bash', args, { cwd: folder, env: environment })
    expect(readFileSync(outputs, 'utf8')).toBe('code=1\n')
    const user = { login: 'github-actions[bot]' }
    const comments: Comment[] = []
    const issues = {
      listComments: () => undefined,
      createComment: ({ body }: Comment) => comments.push({ id: 7, user, body }),
      updateComment: ({ body, comment_id }: Comment & { comment_id: number }) => {
        comments.splice(0, 1, { id: comment_id, user, body })
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
    expect(comments).toEqual([{ id: 7, user, body: expect.stringContaining('## sluice what-if') }])
    expect(comments[0]?.body).toContain('deny 403 → allow, 2 requests')
  })
})
