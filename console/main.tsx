import { render } from 'preact'
import { Shell } from './app/shell.tsx'
import { followHistory } from './state/location.ts'
import { startSource } from './state/start.ts'

followHistory()
startSource()
const root = document.getElementById('console')
if (root !== null) render(<Shell />, root)
