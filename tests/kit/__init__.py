"""What tests of several rooms share: a scripted model server and ways to find real binaries."""
