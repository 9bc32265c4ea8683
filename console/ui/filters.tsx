/** The filters of a list. Each is a parameter of the URL, which does not filter if it is empty. */
import type { ComponentChildren } from 'preact'
import { place, setParams } from '../state/location.ts'

interface FilterBase {
  /** Name of the parameter. */
  readonly name: string
  readonly label: string
}

export type Filter = FilterBase &
  (
    | {
        readonly type: 'text'
        readonly hint: string
        /** Values that do not match are not used. Such a filter is only applied when it is complete. */
        readonly pattern?: string
      }
    | {
        readonly type: 'choice'
        readonly options: readonly (readonly [value: string, text: string])[]
      }
    | { readonly type: 'check' }
  )

interface FiltersProps {
  readonly filters: readonly Filter[]
  /** Number of entries that match, and of all. */
  readonly count?: readonly [matching: number, all: number]
  readonly children?: ComponentChildren
}

const idOf = ({ name }: FilterBase) => `filter-${name}`

export const Filters = ({ filters, count, children }: FiltersProps) => (
  <form class="filters" onSubmit={(event) => event.preventDefault()}>
    {filters.map((filter) => (
      <label
        key={filter.name}
        for={idOf(filter)}
        class={filter.type === 'check' ? 'check' : undefined}
      >
        {filter.type !== 'check' && filter.label}
        <Field {...filter} />
        {filter.type === 'check' && filter.label}
      </label>
    ))}
    {children}
    {count !== undefined && (
      <output>
        {count[0]} of {count[1]}
      </output>
    )}
  </form>
)

function Field(filter: Filter) {
  const { name } = filter
  const value = place.value.params[name] ?? ''
  const set = (next: string) => setParams({ [name]: next })
  switch (filter.type) {
    case 'text':
      return <TextField {...filter} id={idOf(filter)} value={value} set={set} />
    case 'choice':
      return (
        <select
          id={idOf(filter)}
          value={value}
          onChange={({ currentTarget }) => set(currentTarget.value)}
        >
          <option value="">all</option>
          {filter.options.map(([option, text]) => (
            <option key={option} value={option}>
              {text}
            </option>
          ))}
        </select>
      )
    case 'check':
      return (
        <input
          id={idOf(filter)}
          type="checkbox"
          checked={value === 'yes'}
          onChange={() => set(value === 'yes' ? '' : 'yes')}
        />
      )
  }
}

interface TextFieldProps {
  readonly id: string
  readonly hint: string
  readonly pattern?: string
  readonly value: string
  set(value: string): void
}

function TextField({ id, hint, pattern, value, set }: TextFieldProps) {
  if (pattern === undefined) {
    return (
      <input
        id={id}
        type="search"
        value={value}
        placeholder={hint}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
    )
  }
  return (
    <input
      id={id}
      type="search"
      value={value}
      placeholder={hint}
      pattern={pattern}
      onChange={({ currentTarget }) => currentTarget.reportValidity() && set(currentTarget.value)}
    />
  )
}
