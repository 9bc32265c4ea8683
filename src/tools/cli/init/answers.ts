/** The questions of `sluice init`, and what their answers may be. */
import { createInterface } from 'node:readline'
import { ollama, vendors } from '../ai/vendors.ts'
import { UsageError } from '../shared/output.ts'

export interface Answers {
  readonly serve: 'http' | 'ai' | 'mcp'
  /** The URL of the upstream, or the name of a vendor. */
  readonly upstream: string
  readonly port: number
  /** Whether clients need a key. */
  readonly key: boolean
  /** Requests that each client may send in a minute; 0 if there is no limit. */
  readonly limit: number
}

/** The texts of answers; undefined if the question has not been answered. */
export type GivenAnswers = { readonly [Name in keyof Answers]?: string | undefined }

interface Question {
  readonly name: keyof Answers
  readonly text: string
  readonly byDefault: (given: GivenAnswers) => string
  /** Says what is wrong with an answer; undefined if it is usable. */
  readonly problem: (answer: string, given: GivenAnswers) => string | undefined
}

const vendorNames = [...vendors, ollama].map(({ name }) => name)
const upstreams = { http: 'http://127.0.0.1:3000', ai: 'openai', mcp: 'http://127.0.0.1:8101/mcp' }

const isServed = (text: string | undefined): text is Answers['serve'] =>
  text !== undefined && Object.hasOwn(upstreams, text)

const isWhole = (text: string, least: number, most: number) =>
  /^\d{1,9}$/.test(text) && Number(text) >= least && Number(text) <= most

const questions: readonly Question[] = [
  {
    name: 'serve',
    text: 'What does the gateway serve: http, ai or mcp?',
    byDefault: () => 'http',
    problem: (text) => (isServed(text) ? undefined : 'expected http, ai or mcp'),
  },
  {
    name: 'upstream',
    text: 'Where do requests go: a URL, or a vendor of models?',
    byDefault: ({ serve }) => (isServed(serve) ? upstreams[serve] : ''),
    problem: (text, { serve }) => {
      if (serve === 'ai') {
        return vendorNames.includes(text) ? undefined : `expected one of ${vendorNames.join(', ')}`
      }
      const url = URL.canParse(text) ? new URL(text) : undefined
      const isUsable =
        url !== undefined &&
        /^https?:$/.test(url.protocol) &&
        url.username + url.search === '' &&
        url.port !== '0'
      return isUsable ? undefined : 'expected a URL such as http://127.0.0.1:3000'
    },
  },
  {
    name: 'port',
    text: 'On which port does the gateway listen?',
    byDefault: () => '8080',
    problem: (text) => (isWhole(text, 1, 65_535) ? undefined : 'expected a port'),
  },
  {
    name: 'key',
    text: 'Do clients need an API key: yes or no?',
    byDefault: ({ serve }) => (serve === 'http' ? 'no' : 'yes'),
    problem: (text) => (/^(yes|no)$/.test(text) ? undefined : 'expected yes or no'),
  },
  {
    name: 'limit',
    text: 'How many requests may each client send in a minute (0: any number)?',
    byDefault: () => '0',
    problem: (text) =>
      isWhole(text, 0, 100_000_000) ? undefined : 'expected a number up to 100,000,000',
  },
]

/** Checks the given answers, and takes defaults for the others. @throws UsageError */
export function answersOf(given: GivenAnswers): Answers {
  const answers: Record<string, string> = {}
  for (const { name, byDefault, problem } of questions) {
    const answer = given[name] ?? byDefault(answers)
    const wrong = problem(answer, answers)
    if (wrong !== undefined) throw new UsageError(`--${name} ${answer}: ${wrong}`)
    answers[name] = answer
  }
  const { serve, upstream = '', port, key, limit } = answers
  return {
    serve: isServed(serve) ? serve : 'http',
    upstream,
    port: Number(port),
    key: key === 'yes',
    limit: Number(limit),
  }
}

/**
 * Asks a person at a terminal the questions that are not answered yet. A wrong answer is asked for again.
 * @throws UsageError if the input ends before
 */
export async function ask(given: GivenAnswers): Promise<GivenAnswers> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  // An iterator keeps lines that are pasted together.
  const lines = terminal[Symbol.asyncIterator]()
  const answers: Record<string, string> = {}
  try {
    for (const { name, text, byDefault, problem } of questions) {
      let answer = given[name]
      while (answer === undefined) {
        const otherwise = byDefault(answers)
        process.stderr.write(`${text} [${otherwise}] `)
        const { value, done } = await lines.next()
        if (done === true)
          throw new UsageError('the questions were not answered; nothing is written')
        const said = String(value).trim() || otherwise
        const wrong = problem(said, answers)
        if (wrong === undefined) answer = said
        else process.stderr.write(`${wrong}\n`)
      }
      answers[name] = answer
    }
    return answers
  } finally {
    terminal.close()
  }
}
