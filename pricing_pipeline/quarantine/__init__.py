"""Values that are not believed: judged, kept, shown, decided on."""
