import { render } from 'preact'
import { followHistory } from './app/location.ts'
import { Shell } from './app/shell.tsx'
import { startSource } from './app/start.ts'

followHistory()
startSource()
const root = document.getElementById('console')
if (root !== null) render(<Shell />, root)
