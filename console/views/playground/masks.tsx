import { signal } from '@preact/signals'
import type { Builtin } from '../../../src/engines/core/regex-builtins.ts'
import type { EncodingName } from '../../../src/engines/core/tokens.ts'
import { Failure } from '../../ui/states.tsx'
import { TextArea } from '../../ui/text-area.tsx'
import { useCore } from './core-client.ts'

const builtins: readonly { readonly name: Builtin; readonly replacement: string }[] = [
  { name: 'Ssn', replacement: '<SSN>' },
  { name: 'CreditCard', replacement: '<CREDIT_CARD>' },
  { name: 'PhoneNumber', replacement: '<PHONE_NUMBER>' },
  { name: 'Email', replacement: '<EMAIL_ADDRESS>' },
  { name: 'CaSin', replacement: '<CA_SIN>' },
  { name: 'Iban', replacement: '<IBAN>' },
  { name: 'IpAddress', replacement: '<IP_ADDRESS>' },
  { name: 'ApiKey', replacement: '<API_KEY>' },
  { name: 'PrivateKey', replacement: '<PRIVATE_KEY>' },
  { name: 'VatNumber', replacement: '<VAT_NUMBER>' },
  { name: 'DeTaxId', replacement: '<DE_TAX_ID>' },
  { name: 'FrNir', replacement: '<FR_NIR>' },
  { name: 'EsNif', replacement: '<ES_NIF>' },
  { name: 'ItFiscalCode', replacement: '<IT_FISCAL_CODE>' },
  { name: 'NlBsn', replacement: '<NL_BSN>' },
  { name: 'PlPesel', replacement: '<PL_PESEL>' },
  { name: 'SePersonnummer', replacement: '<SE_PERSONNUMMER>' },
  { name: 'UkNino', replacement: '<UK_NINO>' },
  { name: 'UkNhs', replacement: '<UK_NHS>' },
  { name: 'InAadhaar', replacement: '<IN_AADHAAR>' },
  { name: 'BrCpf', replacement: '<BR_CPF>' },
  { name: 'BrCnpj', replacement: '<BR_CNPJ>' },
  { name: 'Secret', replacement: '<SECRET>' },
]

const sample = `Hi, this is Ada. Please move my order to the new address.
Confirm by mail to ada.lovelace@example.com,
or call +1 (415) 555-2671 after six.

Card on file: 4111 1111 1111 1111 (ends 12/31).
The old one was 4111 1111 1111 1112.
My SSN is 078-05-1120; my colleague's SIN is 046 454 286.

Ticket SUP-20481 has more, and the code is sk-live-9f2c4e7a1b.`

// What was typed stays while the reader looks at another view.
const chosen = signal<readonly Builtin[]>(builtins.map(({ name }) => name))
const patterns = signal('\\bSUP-\\d{1,8}\\b\nsk-live-[0-9a-f]{8,40}')
const prompt = signal(sample)
const encoding = signal<EncodingName>('o200k_base')

const timeText = (ms: number) => (ms < 1 ? `${Math.round(ms * 1000)} µs` : `${ms.toFixed(1)} ms`)

export function Masks() {
  const masked = useCore('mask', {
    builtins: builtins.filter(({ name }) => chosen.value.includes(name)),
    patterns: patterns.value.split('\n').filter((pattern) => pattern !== ''),
    text: prompt.value,
  })
  const tokens = useCore('tokens', { text: prompt.value, encoding: encoding.value })
  const { value } = masked
  return (
    <>
      <div class="pair">
        <fieldset class="card">
          <legend>Builtins</legend>
          {builtins.map(({ name, replacement }) => (
            <label key={name} class="check">
              <input
                type="checkbox"
                value={name}
                checked={chosen.value.includes(name)}
                onChange={() => toggle(name)}
              />
              {name} <code>{replacement}</code>
            </label>
          ))}
        </fieldset>
        <div class="card">
          <label for="patterns">Patterns, one a line, RE2 syntax</label>
          <TextArea id="patterns" rows={4} text={patterns} />
          <ul id="pattern-problems" role="alert">
            {value?.problems.map((problem) => (
              <li key={problem}>{problem}</li>
            ))}
          </ul>
        </div>
      </div>
      {masked.error !== undefined && <Failure message={masked.error} />}
      {tokens.error !== undefined && <Failure message={tokens.error} />}
      <div class="pair">
        <div class="card">
          <label for="prompt">Prompt</label>
          <TextArea id="prompt" rows={12} text={prompt} />
        </div>
        <div class="card">
          <span id="masked-label">Masked</span>
          <output id="masked" aria-labelledby="masked-label">
            {value?.parts.map(({ text, isMask }, index) =>
              isMask ? <mark key={index}>{text}</mark> : text,
            )}
          </output>
        </div>
      </div>
      <dl class="figures">
        <div>
          <dt>masked</dt>
          <dd id="count">{value?.count ?? '–'}</dd>
        </div>
        <div>
          <dt>
            <label for="encoding">tokens, </label>
            <select
              id="encoding"
              value={encoding.value}
              onChange={({ currentTarget }) => {
                encoding.value = currentTarget.value as EncodingName
              }}
            >
              <option>o200k_base</option>
              <option>cl100k_base</option>
            </select>
          </dt>
          <dd id="tokens">{tokens.value ?? '–'}</dd>
        </div>
        <div>
          <dt>held back in a stream</dt>
          <dd id="hold">
            {value === undefined
              ? '–'
              : value.holdBytes === undefined
                ? 'no bound'
                : `at most ${value.holdBytes} B`}
          </dd>
        </div>
        <div>
          <dt>time to mask</dt>
          <dd>{value === undefined ? '–' : timeText(value.ms)}</dd>
        </div>
      </dl>
    </>
  )
}

function toggle(name: Builtin): void {
  chosen.value = chosen.value.includes(name)
    ? chosen.value.filter((one) => one !== name)
    : [...chosen.value, name]
}
