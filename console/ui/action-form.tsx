/** A form that changes something, for people who may act. The event has their name, and the reason that they give. */
import { useState } from 'preact/hooks'
import { served } from '../state/served.ts'

interface Field {
  /** Name of the option of the action. */
  readonly name: string
  readonly label: string
  readonly hint?: string
  /** `texts`: separated by commas; `choice`: one of `options`; `flag`: a check box. */
  readonly type?: 'text' | 'texts' | 'choice' | 'flag'
  readonly options?: readonly (readonly [value: string, label: string])[]
  readonly value?: string
  readonly isRequired?: true
}

interface ActionFormProps {
  /** Name of the action, the field whose value is the name, or several actions with the texts of their buttons. */
  readonly action:
    | string
    | { readonly field: string }
    | readonly (readonly [name: string, button: string])[]
  /** Text of the heading, and of the button unless there are several. */
  readonly title: string
  readonly fields?: readonly Field[]
  /** Makes the options of the action from those of the fields. */
  readonly toOptions?: (given: Options) => object
  readonly children?: preact.ComponentChildren
}

type Values = Readonly<Record<string, string>>
type Options = Readonly<Record<string, string | readonly string[] | true>>

const reason: Field = {
  name: 'reason',
  label: 'Reason',
  hint: 'for those who read the log',
  isRequired: true,
}

export function ActionForm(props: ActionFormProps) {
  const { action, title, fields = [], toOptions = (given) => given, children } = props
  const all = [...fields, reason]
  const [given, setGiven] = useState<Values>({})
  const [outcome, setOutcome] = useState<Outcome | 'busy'>()
  const idOf = ({ name }: Field) => `${title} ${name}`.replaceAll(' ', '-')
  const values = Object.fromEntries(
    all.map(({ name, value = '' }) => [name, given[name] ?? value] as const),
  )
  const field = typeof action === 'object' && 'field' in action ? action.field : undefined
  const buttons =
    typeof action === 'object' && !('field' in action)
      ? action
      : [[typeof action === 'string' ? action : '', title] as const]
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    setOutcome('busy')
    const chosen = (event.submitter as HTMLButtonElement | null)?.value ?? ''
    const name = field === undefined ? chosen : (values[field] ?? '')
    run(name, toOptions(optionsOf(all, values, field))).then((result) => {
      setOutcome(result)
      if (!result.isProblem) setGiven({})
    })
  }
  return (
    <section class="card action" aria-label={title}>
      <h2>{title}</h2>
      {children}
      <form class="send-form" onSubmit={submit}>
        {all.map((field) => (
          <div key={field.name} class="wide">
            <label htmlFor={idOf(field)}>{field.label}</label>
            <Input
              {...field}
              id={idOf(field)}
              current={values[field.name] ?? ''}
              onChange={(value) => setGiven((before) => ({ ...before, [field.name]: value }))}
            />
          </div>
        ))}
        <div class="buttons">
          {buttons.map(([name, text]) => (
            <button
              key={text}
              type="submit"
              class="button"
              value={name}
              disabled={outcome === 'busy'}
            >
              {text}
            </button>
          ))}
        </div>
      </form>
      {typeof outcome === 'object' && <Shown {...outcome} />}
    </section>
  )
}

interface InputProps extends Field {
  readonly id: string
  readonly current: string
  readonly onChange: (value: string) => void
}

function Input(props: InputProps) {
  const { id, type = 'text', options = [], hint, isRequired, current, onChange } = props
  if (type === 'flag') {
    const change = (isChecked: boolean) => onChange(`${isChecked}`)
    return (
      <input
        id={id}
        type="checkbox"
        checked={current === 'true'}
        onChange={({ currentTarget }) => change(currentTarget.checked)}
      />
    )
  }
  if (type === 'choice') {
    return (
      <select
        id={id}
        value={current}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      >
        {options.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    )
  }
  return (
    <input
      id={id}
      type="text"
      value={current}
      placeholder={hint}
      required={isRequired}
      onInput={({ currentTarget }) => onChange(currentTarget.value)}
    />
  )
}

/** Empty fields are left out. */
function optionsOf(fields: readonly Field[], values: Values, chosen: string | undefined): Options {
  const options: Record<string, Options[string]> = {}
  for (const { name, type } of fields) {
    const value = (values[name] ?? '').trim()
    if (name === chosen || value === '') continue
    if (type === 'texts') options[name] = value.split(',').map((part) => part.trim())
    else if (type !== 'flag') options[name] = value
    else if (value === 'true') options[name] = true
  }
  return options
}

interface Outcome {
  readonly isProblem: boolean
  readonly lines: readonly string[]
  /** A new key, which is shown once. */
  readonly key?: string | undefined
}

async function run(name: string, options: object): Promise<Outcome> {
  try {
    const answer = await served.value?.server.act(name, options)
    if (answer === undefined) return { isProblem: true, lines: ['No process serves this page.'] }
    const { exitCode, output, reports } = answer
    if (exitCode !== 0) return { isProblem: true, lines: reports }
    const result = JSON.parse(output) as { readonly served?: string; readonly key?: string }
    return { isProblem: false, lines: [result.served ?? 'Done.', ...reports], key: result.key }
  } catch (error) {
    return { isProblem: true, lines: [error instanceof Error ? error.message : String(error)] }
  }
}

const Shown = ({ isProblem, lines, key }: Outcome) => (
  <div role={isProblem ? 'alert' : 'status'} class={isProblem ? 'bad' : ''}>
    {key !== undefined && (
      <p>
        The key, which is shown only now: <code>{key}</code>
      </p>
    )}
    {lines.map((line) => (
      <p key={line}>{line}</p>
    ))}
  </div>
)
