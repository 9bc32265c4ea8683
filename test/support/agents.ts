/** Coding agents that people use, run without their own network and settings: each reads a file and ends. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { canUnshare } from './namespaces.ts'
import { type PartName, partPath } from './parts.ts'

/** The file that agents read. Guards mask the address. */
export const noteFile = 'note.txt'
export const noteCode = 'code-4711'
export const noteAddress = 'ann.secret@example.com'

export interface AgentRun {
  readonly code: number
  /** What the agent wrote to standard output and standard error. */
  readonly text: string
  /** What the agent asked outside of loopback, besides the hosts that it is known to ask; undefined if the system permits no namespaces. */
  readonly outside: readonly string[] | undefined
}

/** Without the network and the processes of the machine; what runs in them ends with them. */
const namespaces = [
  ...['--user', '--map-root-user', '--net', '--mount'],
  ...['--pid', '--fork', '--kill-child', '--mount-proc'],
]
export const isIsolated = canUnshare(namespaces, ['ip', 'link'])

interface Agent {
  readonly part: PartName
  readonly program: string
  /** The call of a tool that reads the file; `folder` is where the agent works. */
  readonly call: (folder: string) => { readonly name: string; readonly input: object }
  readonly args: (model: string, prompt: string) => readonly string[]
  readonly env: (base: string) => Readonly<Record<string, string>>
  /** Files below the home of the agent. */
  readonly files?: (base: string) => Readonly<Record<string, string>>
}

const key = 'dummy-key'

const opencodeProvider = (base: string) => ({ options: { baseURL: `${base}/v1`, apiKey: key } })

export const agents = {
  claude: {
    part: 'claude-code',
    program: 'claude',
    call: (folder) => ({ name: 'Read', input: { file_path: join(folder, noteFile) } }),
    args: (model, prompt) => ['-p', prompt, '--allowedTools', 'Read', '--model', model],
    env: (base) => ({
      ANTHROPIC_BASE_URL: base,
      ANTHROPIC_API_KEY: key,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    }),
  },
  'claude-bedrock': {
    part: 'claude-code',
    program: 'claude',
    call: (folder) => ({ name: 'Read', input: { file_path: join(folder, noteFile) } }),
    args: (model, prompt) => ['-p', prompt, '--allowedTools', 'Read', '--model', model],
    env: (base) => ({
      CLAUDE_CODE_USE_BEDROCK: '1',
      ANTHROPIC_BEDROCK_BASE_URL: base,
      AWS_BEARER_TOKEN_BEDROCK: key,
      AWS_REGION: 'us-east-1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    }),
  },
  codex: {
    part: 'codex',
    program: 'codex',
    call: () => ({ name: 'exec_command', input: { cmd: `cat ${noteFile}` } }),
    args: (model, prompt) => [
      ...['exec', '--skip-git-repo-check', '--sandbox', 'danger-full-access', '-m', model],
      prompt,
    ],
    env: () => ({ SLUICE_KEY: key }),
    files: (base) => ({
      '.codex/config.toml': [
        'model_provider = "sluice"',
        'check_for_update_on_startup = false',
        '[model_providers.sluice]',
        'name = "Sluice"',
        `base_url = "${base}/v1"`,
        'wire_api = "responses"',
        'env_key = "SLUICE_KEY"',
        '[analytics]',
        'enabled = false',
        '[features]',
        'plugins = false',
        'apps = false',
      ].join('\n'),
    }),
  },
  gemini: {
    part: 'gemini-cli',
    program: 'gemini',
    call: (folder) => ({ name: 'read_file', input: { file_path: join(folder, noteFile) } }),
    args: (model, prompt) => ['-p', prompt, '--yolo', '--skip-trust', '-m', model],
    env: (base) => ({ GEMINI_API_KEY: key, GOOGLE_GEMINI_BASE_URL: base }),
    files: () => ({
      '.gemini/settings.json': JSON.stringify({
        security: { auth: { selectedType: 'gemini-api-key' } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false },
      }),
    }),
  },
  opencode: {
    part: 'opencode',
    program: 'opencode',
    call: (folder) => ({ name: 'read', input: { filePath: join(folder, noteFile) } }),
    args: (model, prompt) => ['run', '-m', model, prompt],
    env: () => ({
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      OPENCODE_PURE: '1',
    }),
    files: (base) => ({
      // Without these files, it installs its library for plugins when it starts.
      '.config/opencode/node_modules/.keep': '',
      '.config/opencode/package-lock.json': JSON.stringify({
        packages: { '': { dependencies: { '@opencode-ai/plugin': '*' } } },
      }),
      '.config/opencode/opencode.json': JSON.stringify({
        share: 'disabled',
        provider: { anthropic: opencodeProvider(base), openai: opencodeProvider(base) },
      }),
    }),
  },
} as const satisfies Readonly<Record<string, Agent>>

export type AgentName = keyof typeof agents

/** A folder with the file that an agent reads, and its home. */
export class AgentFolder {
  readonly home = mkdtempSync(join(tmpdir(), 'sluice-agent-'))
  readonly work = join(this.home, 'work')
  /** Lines of what was asked outside of loopback. */
  readonly #asked = join(this.home, 'outside')
  #bridge: Server | undefined

  constructor() {
    mkdirSync(this.work)
    writeFileSync(join(this.work, noteFile), `${noteCode} is for ${noteAddress}\n`)
  }

  /** Returns the command that runs a program without a network; the port of `base` is led there by a socket. */
  #alone(base: string): readonly string[] {
    if (!isIsolated) return []
    const { port } = new URL(base)
    const socket = join(this.home, 'gateway.sock')
    this.#bridge = createServer((client) => {
      const upstream = connect(Number(port), '127.0.0.1')
      for (const [one, other] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        one.on('error', () => other.destroy()).on('close', () => other.destroy())
        one.pipe(other)
      }
    }).listen(socket)
    const script = join(import.meta.dirname, 'loopback-only.ts')
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', script]
    return ['unshare', ...namespaces, ...node, socket, port, this.#asked]
  }

  #outside(): readonly string[] | undefined {
    if (!isIsolated) return undefined
    return existsSync(this.#asked) ? readFileSync(this.#asked, 'utf8').trim().split('\n') : []
  }

  dispose(): void {
    this.#bridge?.close()
    rmSync(this.home, { recursive: true, force: true })
  }

  /** Runs an agent to its end. Requests to other hosts than loopback fail. */
  run(name: AgentName, model: string, base: string, limitMs: number): Promise<AgentRun> {
    const agent: Agent = agents[name]
    for (const [path, content] of Object.entries(agent.files?.(base) ?? {})) {
      mkdirSync(dirname(join(this.home, path)), { recursive: true })
      writeFileSync(join(this.home, path), content)
    }
    const nowhere = 'http://127.0.0.1:9'
    const env = {
      PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
      HOME: this.home,
      TERM: 'dumb',
      HTTP_PROXY: nowhere,
      HTTPS_PROXY: nowhere,
      NO_PROXY: '127.0.0.1',
      ...agent.env(base),
    }
    const program = join(partPath(agent.part), 'node_modules', '.bin', agent.program)
    const args = agent.args(model, `Read ${noteFile} and tell me the code.`)
    const { promise, resolve } = Promise.withResolvers<AgentRun>()
    const options = { cwd: this.work, env, timeout: limitMs, killSignal: 'SIGKILL' as const }
    const [first = '', ...rest] = [...this.#alone(base), program, ...args]
    const child = execFile(first, rest, options, (error, stdout, stderr) => {
      const code = typeof error?.code === 'number' ? error.code : error === null ? 0 : -1
      resolve({ code, text: `${stdout}\n${stderr}`, outside: this.#outside() })
    })
    child.stdin?.end()
    return promise
  }
}
