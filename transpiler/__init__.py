"""Program -> Programs."""
