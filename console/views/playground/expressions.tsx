import { signal } from '@preact/signals'
import { useCore } from './core-client.ts'

const source = signal('request.path.startsWith("/admin") && jwt.role == "admin"')
const variables = signal(`{
  "request": { "method": "GET", "path": "/admin/users", "headers": { "x-team": "blue" } },
  "jwt": { "sub": "ada", "role": "admin" }
}`)

export function Expressions() {
  const { value, error } = useCore('expression', {
    source: source.value,
    variables: variables.value,
  })
  const problem = error ?? value?.problem
  return (
    <div class="pair">
      <div class="card">
        <label for="expression">Expression</label>
        <textarea
          id="expression"
          rows={4}
          spellcheck={false}
          value={source.value}
          onInput={({ currentTarget }) => {
            source.value = currentTarget.value
          }}
        />
        <label for="variables">Variables, as JSON</label>
        <textarea
          id="variables"
          rows={10}
          spellcheck={false}
          value={variables.value}
          onInput={({ currentTarget }) => {
            variables.value = currentTarget.value
          }}
        />
      </div>
      <div class="card">
        <span id="result-label">Result</span>
        <output
          id="result"
          class={problem === undefined ? '' : 'bad'}
          aria-labelledby="result-label"
        >
          {problem ?? value?.value ?? '–'}
        </output>
      </div>
    </div>
  )
}
