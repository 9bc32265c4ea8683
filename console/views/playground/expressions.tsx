import { signal } from '@preact/signals'
import { TextArea } from '../../ui/text-area.tsx'
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
        <TextArea id="expression" rows={4} text={source} />
        <label for="variables">Variables, as JSON</label>
        <TextArea id="variables" rows={10} text={variables} />
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
