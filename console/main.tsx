import { render } from 'preact'
import { Shell } from './app/shell.tsx'
import { followHistory, readPlace } from './state/location.ts'
import { startSource } from './state/start.ts'

followHistory()
startSource()
// The URL that a process prints has its key in place of a view.
readPlace()
const root = document.getElementById('console')
if (root !== null) {
  root.replaceChildren()
  render(<Shell />, root)
}
