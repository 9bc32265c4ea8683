/** Runs every guide and the README by their own commands, and compares what they print. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { freePorts } from '../support/gateway.ts'
import { type CodeBlock, pagesBelow, readPage, repository } from '../support/markdown.ts'
import { describeWithParts, type PartName } from '../support/parts.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

/** What pages use from the repository without changing it. */
const linked = [
  'assembly',
  'bin',
  'charts',
  'dist',
  'events',
  'node_modules',
  'package.json',
  'proto',
]

/** The folders of `examples` that a page names, but not those of other sites in its links. */
const examplesOf = (page: string) =>
  new Set([...page.matchAll(/(?<!\w\/)examples\/([\w-]+)/g)].map(([, name = '']) => name))

/** A copy of the examples with free ports, in which the commands of one page run. */
class Sandbox {
  readonly folder = mkdtempSync(join(tmpdir(), 'sluice-guide-'))
  readonly #servers: ChildProcess[] = []
  #ports: ReadonlyMap<string, number> = new Map()

  /** Copies the examples that the page names, with a free port for each port of page and examples. */
  async prepare(page: string): Promise<void> {
    for (const link of linked) symlinkSync(join(repository, link), join(this.folder, link))
    // A page that changes the source gets a copy of it.
    if (page.includes(' src/')) {
      cpSync(join(repository, 'src'), join(this.folder, 'src'), { recursive: true })
    }
    mkdirSync(join(this.folder, 'tmp'))
    const names = examplesOf(page)
    const files: string[] = []
    for (const name of names) {
      const to = join(this.folder, 'examples', name)
      cpSync(join(repository, 'examples', name), to, { recursive: true })
      for (const file of readdirSync(to, { recursive: true, encoding: 'utf8' })) {
        if (/\.(yaml|mjs)$/.test(file)) files.push(join(to, file))
      }
    }
    const texts = files.map((file) => [file, readFileSync(file, 'utf8')] as const)
    const all = [page, ...texts.map(([, text]) => text)].join('\n')
    const found = all.matchAll(/(?:\bport: |127\.0\.0\.1:|', )(\d{4,5})\b/g)
    const numbers = [...new Set([...found].map(([, port = '']) => port))]
    this.#ports = new Map(Object.entries(await freePorts(...numbers)))
    for (const [file, text] of texts) writeFileSync(file, this.#moved(text))
  }

  #moved(text: string): string {
    return text.replace(/\b\d{4,5}\b/g, (number) => `${this.#ports.get(number) ?? number}`)
  }

  #script(text: string): string {
    return this.#moved(text).replaceAll('/tmp/', `${this.folder}/tmp/`)
  }

  get #environment(): NodeJS.ProcessEnv {
    const address = (port: string) => `127.0.0.1:${this.#ports.get(port) ?? 0}`
    return {
      ...process.env,
      XDG_STATE_HOME: join(this.folder, 'state'),
      SLUICE_BIND_ADDRESS: '127.0.0.1',
      SLUICE_ADMIN_ADDRESS: address('15000'),
      SLUICE_STATS_ADDRESS: address('15020'),
      SLUICE_READINESS_ADDRESS: address('15021'),
      SLUICE_CONSOLE_ADDRESS: 'off',
    }
  }

  /** Starts a command that goes on, and waits until it prints `ready`. */
  async serve(text: string): Promise<void> {
    const command = `exec ${this.#script(text)}`
    const server = spawn('bash', ['-c', command], { cwd: this.folder, env: this.#environment })
    this.#servers.push(server)
    let output = ''
    for (const stream of [server.stdout, server.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
      })
    }
    await waitFor(`"ready" of ${text}`, () => {
      if (server.exitCode !== null) throw new Error(`${text} ended:\n${output}`)
      return /^ready$/m.test(output)
    })
  }

  run(text: string): Promise<{ code: number; output: string }> {
    const options = { cwd: this.folder, env: this.#environment, maxBuffer: 1 << 26 }
    return new Promise((resolve) => {
      execFile('bash', ['-ec', this.#script(text)], options, (error, stdout, stderr) => {
        const code = error === null ? 0 : Number(error.code ?? 1)
        resolve({ code, output: stdout.trimEnd() + (code > 3 ? stderr : '') })
      })
    })
  }

  /** Ends the server that was started last, as Ctrl-C does. */
  async stopLast(): Promise<void> {
    const server = this.#servers.pop()
    server?.kill('SIGINT')
    await waitFor(
      'the end of a server',
      () => server?.exitCode !== null || server.signalCode !== null,
    )
  }

  async dispose(): Promise<void> {
    for (const server of this.#servers) server.kill('SIGKILL')
    await waitFor('the end of all servers', () =>
      this.#servers.every(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null),
    )
    rmSync(this.folder, { recursive: true })
  }
}

/** In expected output, `…` stands for any text. */
function pattern(expected: string): RegExp {
  const parts = expected.trimEnd().split('…')
  return new RegExp(`^${parts.map((part) => RegExp.escape(part)).join('[^]*?')}$`)
}

const flagValue = ({ flags }: CodeBlock, name: string) =>
  flags.find((flag) => flag.startsWith(`${name}=`))?.slice(name.length + 1)

/** The guide's manifests are those of its example: a block of YAML stands in a file word by word. */
function manifestsOf(page: string): string {
  const folders = [...examplesOf(page)].map((name) => join(repository, 'examples', name))
  return folders
    .flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.yaml'))
        .map((file) => readFileSync(join(folder, file), 'utf8')),
    )
    .join('\n')
}

let sandbox: Sandbox

afterEach(() => sandbox.dispose())

async function follow(blocks: readonly CodeBlock[], manifests: string): Promise<void> {
  for (const [index, block] of blocks.entries()) {
    if (block.language === 'yaml') expect(manifests).toContain(block.text)
    if (block.language !== 'sh' || /^npm /m.test(block.text)) continue
    if (block.flags.includes('server')) {
      await sandbox.serve(block.text)
      continue
    }
    if (block.flags.includes('after-stop')) await sandbox.stopLast()
    const next = blocks[index + 1]
    const expected = next?.language === 'text' ? pattern(next.text) : undefined
    const attempt = async () => {
      const { code, output } = await sandbox.run(block.text)
      expect({ code, output }).toEqual({
        code: Number(flagValue(block, 'exit') ?? 0),
        output: expected === undefined ? output : expect.stringMatching(expected),
      })
    }
    await (block.flags.includes('eventually') ? eventually(attempt) : attempt())
  }
}

const guides = pagesBelow('docs/guides').filter((path) => !path.endsWith('index.md'))

/** Guides whose commands need a program that is not an npm package. */
const withParts: Readonly<Record<string, readonly PartName[]>> = {
  'docs/guides/replicas.md': ['nats-server', 'helm'],
}

const print = 'print what the page shows'

async function followPage(path: string): Promise<void> {
  const text = readFileSync(join(repository, path), 'utf8')
  const { blocks } = readPage(path)
  sandbox = new Sandbox()
  await sandbox.prepare(text)
  await follow(blocks, manifestsOf(text))
}

describe('the commands of', () => {
  it.each(['README.md', ...guides.filter((path) => !(path in withParts))])(
    `%s ${print}`,
    followPage,
  )
})

for (const [path, parts] of Object.entries(withParts)) {
  describeWithParts(parts, `the commands of ${path}`, () => {
    it(print, () => followPage(path))
  })
}
