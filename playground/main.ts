import * as abi from '../src/core/abi.ts'
import { Core, type Problem, type Rule } from './core.ts'

const builtins = [
  { name: 'Ssn', number: abi.DETECT_SSN, replacement: '<SSN>' },
  { name: 'CreditCard', number: abi.DETECT_CARD, replacement: '<CREDIT_CARD>' },
  { name: 'PhoneNumber', number: abi.DETECT_PHONE, replacement: '<PHONE_NUMBER>' },
  { name: 'Email', number: abi.DETECT_EMAIL, replacement: '<EMAIL_ADDRESS>' },
  { name: 'CaSin', number: abi.DETECT_SIN, replacement: '<CA_SIN>' },
]

const sample = `Hi, this is Ada. Please move my order to the new address.
Confirm by mail to ada.lovelace@example.com,
or call +1 (415) 555-2671 after six.

Card on file: 4111 1111 1111 1111 (ends 12/31).
The old one was 4111 1111 1111 1112.
My SSN is 078-05-1120; my colleague's SIN is 046 454 286.

Ticket SUP-20481 has more, the key is sk-live-9f2c4e7a1b.`

const samplePatterns = '\\bSUP-\\d{1,8}\\b\nsk-live-[0-9a-f]{8,40}'

function element<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const found = document.getElementById(id)
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`)
  return found
}

const prompt = element('prompt', HTMLTextAreaElement)
const patterns = element('patterns', HTMLTextAreaElement)
const encoding = element('encoding', HTMLSelectElement)
const figures = element('figures', HTMLDListElement)

/** Around replacements, so that they can be shown as such; no prompt has them. */
const open = '\u{f0000}'
const close = '\u{f0001}'

function chosenRules(): Rule[] {
  const chosen = [...document.querySelectorAll<HTMLInputElement>('#builtins input:checked')]
  const names = new Set(chosen.map(({ value }) => value))
  const marked = (replacement: string) => open + replacement + close
  return [
    ...builtins
      .filter(({ name }) => names.has(name))
      .map(({ number, replacement }) => ({ builtin: number, replacement: marked(replacement) })),
    ...patterns.value
      .split('\n')
      .filter((pattern) => pattern !== '')
      .map((pattern, index) => ({ pattern, replacement: marked(`<PATTERN_${index + 1}>`) })),
  ]
}

function tell(id: string, text: string): void {
  element(id, HTMLElement).textContent = text
}

function showMasked(text: string): void {
  const parts = text.split(open).flatMap((part, index) => {
    if (index === 0) return [part]
    const end = part.indexOf(close)
    const mark = document.createElement('mark')
    mark.textContent = part.slice(0, end)
    return [mark, part.slice(end + close.length)]
  })
  element('masked', HTMLOutputElement).replaceChildren(...parts)
}

const codeNames = new Map(
  Object.entries(abi)
    .filter(([name]) => name.startsWith('REGEX_'))
    .map(([name, code]) => [code as number, name.slice('REGEX_'.length).toLowerCase()]),
)

function showProblems(problems: readonly Problem[]): void {
  const items = problems.map(({ pattern, code, offset }) => {
    const item = document.createElement('li')
    const reason = (codeNames.get(code) ?? `code ${code}`).replaceAll('_', ' ')
    item.textContent = `${pattern}: ${reason} at byte ${offset}`
    return item
  })
  element('problems', HTMLUListElement).replaceChildren(...items)
}

/** What a run costs once the automata of a mask are built; a page's clock is too coarse for one. */
function timeOf(work: () => void, length: number): string {
  const times = Math.max(1, Math.min(100, Math.floor(500_000 / (length + 1))))
  const begun = performance.now()
  for (let n = 0; n < times; n++) work()
  const spent = (performance.now() - begun) / times
  return spent < 1 ? `${Math.round(spent * 1000)} µs` : `${spent.toFixed(1)} ms`
}

function update(core: Core): void {
  const { mask, problems } = core.makeMask(chosenRules())
  showProblems(problems)
  const masked = core.applyMask(mask, prompt.value)
  const time = timeOf(() => core.applyMask(mask, prompt.value), prompt.value.length)
  showMasked(masked.text)
  const hold = core.holdOf(mask)
  tell('count', String(masked.count))
  tell('hold', hold === undefined ? 'no bound' : `at most ${hold} B`)
  tell('time', time)
  core.freeMask(mask)
}

const vocabularies = new Map<string, Promise<number>>()

/** Loaded when first asked for, once. */
function vocabularyOf(core: Core, name: string): Promise<number> {
  const present = vocabularies.get(name)
  if (present !== undefined) return present
  const loading = (async () => {
    const { body, ok } = await fetch(`${name}.tokens.gz`)
    if (!ok || body === null) throw new Error(`${name} could not be loaded`)
    const file = new Response(body.pipeThrough(new DecompressionStream('gzip')))
    return core.loadVocabulary(new Uint8Array(await file.arrayBuffer()))
  })()
  vocabularies.set(name, loading)
  return loading
}

async function updateTokens(core: Core): Promise<void> {
  const name = encoding.value
  const vocabulary = await vocabularyOf(core, name)
  if (name === encoding.value) tell('tokens', String(core.countTokens(vocabulary, prompt.value)))
}

function fillPage(): void {
  const labels = builtins.map(({ name, replacement }) => {
    const label = Object.assign(document.createElement('label'), { className: 'choice' })
    const box = Object.assign(document.createElement('input'), { value: name, checked: true })
    box.type = 'checkbox'
    const code = Object.assign(document.createElement('code'), { textContent: replacement })
    label.append(box, name, code)
    return label
  })
  element('builtins', HTMLFieldSetElement).append(...labels)
  prompt.value = sample
  patterns.value = samplePatterns
}

async function start(): Promise<void> {
  fillPage()
  const core = await Core.load('core.wasm')
  document.addEventListener('input', ({ target }) => {
    if (target !== encoding) update(core)
    if (target === encoding || target === prompt) updateTokens(core).catch(fail)
  })
  update(core)
  await updateTokens(core)
  figures.dataset.state = 'ready'
}

function fail(error: unknown): void {
  figures.dataset.state = 'failed'
  const item = document.createElement('li')
  item.textContent = String(error)
  element('problems', HTMLUListElement).replaceChildren(item)
}

start().catch(fail)
