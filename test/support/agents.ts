/** Coding agents that people use, run without their own network and settings: each reads a file and ends. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type PartName, partPath } from './parts.ts'

/** The file that agents read. Guards mask the address. */
export const noteFile = 'note.txt'
export const noteCode = 'code-4711'
export const noteAddress = 'ann.secret@example.com'

export interface AgentRun {
  readonly code: number
  /** What the agent wrote to standard output and standard error. */
  readonly text: string
}

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
        '[model_providers.sluice]',
        'name = "Sluice"',
        `base_url = "${base}/v1"`,
        'wire_api = "responses"',
        'env_key = "SLUICE_KEY"',
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

  constructor() {
    mkdirSync(this.work)
    writeFileSync(join(this.work, noteFile), `${noteCode} is for ${noteAddress}\n`)
  }

  dispose(): void {
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
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      const code = typeof error?.code === 'number' ? error.code : error === null ? 0 : -1
      resolve({ code, text: `${stdout}\n${stderr}` })
    })
    child.stdin?.end()
    return promise
  }
}
